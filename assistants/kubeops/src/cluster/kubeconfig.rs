//! Where the cluster is and how to sign in, from a kubeconfig or from the pod that the program runs in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value;

/// The maximum size of a file, in bytes.
const FILE_BYTES: u64 = 1 << 20;
/// Where a pod finds its service account.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// A cluster and the credentials for it.
#[derive(Clone)]
pub(crate) struct Connection {
    /// The URL of the API server, without a trailing slash.
    pub(crate) server: String,
    pub(crate) token: Option<Token>,
    /// The namespace for commands that name none.
    pub(crate) namespace: String,
    pub(crate) tls: Option<rustls::ClientConfig>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("server", &self.server)
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

/// A bearer token, or the file that contains it. The file is read for every request, because service account tokens are rotated.
#[derive(Clone)]
pub(crate) enum Token {
    Value(String),
    File(PathBuf),
}

/// Why there is no connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KubeconfigError(String);

type Result<T> = std::result::Result<T, KubeconfigError>;

fn error<T>(reason: impl Into<String>) -> Result<T> {
    Err(KubeconfigError(reason.into()))
}

/// Returns the default kubeconfig: `.kube/config` in the user's home folder.
pub(crate) fn default_file() -> Option<PathBuf> {
    std::env::home_dir().map(|home| home.join(".kube").join("config"))
}

/// Returns the error for a program that has no kubeconfig and does not run in a pod.
pub(crate) fn missing() -> KubeconfigError {
    KubeconfigError("no cluster is configured: set KUBECONFIG to a kubeconfig file".to_owned())
}

impl Connection {
    /// Reads a kubeconfig. `context` overrides its current context.
    pub(crate) fn read(file: &Path, context: Option<&str>) -> Result<Self> {
        let text = text_of(file)?;
        let name = file.display();
        let config: Value = serde_saphyr::from_str(&text).map_err(|error| {
            KubeconfigError(format!("{name}: {}", error.to_string().lines().next().unwrap_or("invalid YAML")))
        })?;
        let Some(context_name) = context.or_else(|| config["current-context"].as_str()).filter(|name| !name.is_empty())
        else {
            return error(format!("{name} has no current-context"));
        };
        let context = entry(&config, "contexts", context_name, "context", file)?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let cluster = entry(&config, "clusters", &text(&context["cluster"]), "cluster", file)?;
        let user_name = text(&context["user"]);
        let user = if user_name.is_empty() { Value::Null } else { entry(&config, "users", &user_name, "user", file)? };
        if !user["exec"].is_null() || !user["auth-provider"].is_null() {
            return error(format!(
                "{name}: user {user_name} signs in with a program, which is not supported; use a token or a certificate"
            ));
        }
        if cluster["insecure-skip-tls-verify"] == true {
            return error(format!(
                "{name}: insecure-skip-tls-verify is not supported; give the cluster's certificate-authority"
            ));
        }
        let server = text(&cluster["server"]).trim_end_matches('/').to_owned();
        if !["https://", "http://"].iter().any(|scheme| server.starts_with(scheme)) {
            return error(format!("{name}: the cluster's `server` is not a URL"));
        }
        let token = match (user["token"].as_str(), user["tokenFile"].as_str()) {
            (Some(token), _) => Some(Token::Value(token.to_owned())),
            (None, Some(path)) => Some(Token::File(beside(file, path))),
            (None, None) => None,
        };
        let authority = bytes(&cluster, "certificate-authority", file)?;
        let identity = match (bytes(&user, "client-certificate", file)?, bytes(&user, "client-key", file)?) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            _ => None,
        };
        let tls = if server.starts_with("https:") { Some(tls(authority, identity)?) } else { None };
        let namespace = context["namespace"].as_str().filter(|name| !name.is_empty()).unwrap_or("default").to_owned();
        Ok(Self { server, token, namespace, tls })
    }

    /// Returns the connection of the pod that the program runs in; `None` outside of a cluster.
    pub(crate) fn of_pod() -> Option<Result<Self>> {
        let folder = Path::new(SERVICE_ACCOUNT);
        let token = folder.join("token");
        if !token.is_file() {
            return None;
        }
        let namespace = text_of(&folder.join("namespace")).unwrap_or_else(|_| "default".to_owned());
        let tls = text_of(&folder.join("ca.crt")).and_then(|authority| tls(Some(authority.into_bytes()), None));
        Some(tls.map(|tls| Self {
            server: "https://kubernetes.default.svc".to_owned(),
            token: Some(Token::File(token)),
            namespace: namespace.trim().to_owned(),
            tls: Some(tls),
        }))
    }
}

fn text_of(file: &Path) -> Result<String> {
    let unreadable = |error: std::io::Error| KubeconfigError(format!("{} cannot be read: {error}", file.display()));
    if std::fs::metadata(file).map_err(unreadable)?.len() > FILE_BYTES {
        return error(format!("{} is larger than {FILE_BYTES} bytes", file.display()));
    }
    std::fs::read_to_string(file).map_err(unreadable)
}

impl Token {
    /// Returns the token; `None` if its file cannot be read.
    pub(crate) fn get(&self) -> Option<String> {
        match self {
            Self::Value(token) => Some(token.clone()),
            Self::File(file) => text_of(file).ok().map(|token| token.trim().to_owned()),
        }
    }
}

/// Finds the entry with the given name in one of a kubeconfig's lists.
fn entry(config: &Value, list: &str, name: &str, member: &str, file: &Path) -> Result<Value> {
    let found = config[list].as_array().into_iter().flatten().find(|entry| entry["name"] == *name);
    match found {
        Some(found) => Ok(found[member].clone()),
        None => error(format!("{} has no {member} named `{name}`", file.display())),
    }
}

/// Resolves a path relative to the kubeconfig that contains it.
fn beside(file: &Path, path: &str) -> PathBuf {
    file.parent().unwrap_or(Path::new("")).join(path)
}

/// Returns the PEM text in `NAME-data`, or in the file that `NAME` names.
fn bytes(entry: &Value, name: &str, file: &Path) -> Result<Option<Vec<u8>>> {
    if let Some(data) = entry[format!("{name}-data")].as_str() {
        let decoded = base64::engine::general_purpose::STANDARD.decode(data.trim());
        return match decoded {
            Ok(decoded) => Ok(Some(decoded)),
            Err(_) => error(format!("{}: {name}-data is not base64", file.display())),
        };
    }
    match entry[name].as_str() {
        Some(path) => Ok(Some(text_of(&beside(file, path))?.into_bytes())),
        None => Ok(None),
    }
}

fn tls(authority: Option<Vec<u8>>, identity: Option<(Vec<u8>, Vec<u8>)>) -> Result<rustls::ClientConfig> {
    let invalid = |what: &str| KubeconfigError(format!("the {what} is not valid PEM"));
    let Some(authority) = authority else {
        let config = threadkeep::models::client_tls().map_err(|error| KubeconfigError(error.to_string()))?;
        return if identity.is_none() {
            Ok(config)
        } else {
            error("a client certificate needs the cluster's certificate-authority")
        };
    };
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&authority) {
        let certificate = certificate.map_err(|_| invalid("certificate-authority"))?;
        roots.add(certificate).map_err(|_| invalid("certificate-authority"))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| KubeconfigError(error.to_string()))?
        .with_root_certificates(roots);
    let Some((certificate, key)) = identity else { return Ok(builder.with_no_client_auth()) };
    let chain: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&certificate).collect();
    let chain = chain.map_err(|_| invalid("client-certificate"))?;
    let key = PrivateKeyDer::from_pem_slice(&key).map_err(|_| invalid("client-key"))?;
    builder.with_client_auth_cert(chain, key).map_err(|_| invalid("client-certificate or client-key"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Connection> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        std::fs::write(&file, text).unwrap();
        Connection::read(&file, None)
    }

    const CONFIG: &str = "current-context: a\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1/'}}]\n\
                          contexts: [{name: a, context: {cluster: c, user: u, namespace: shop}}]\n";

    #[test]
    fn a_kubeconfig_names_the_server_the_namespace_and_the_token() {
        let connection = read(&format!("{CONFIG}users: [{{name: u, user: {{token: t0k}}}}]\n")).unwrap();
        assert_eq!((&*connection.server, &*connection.namespace), ("http://127.0.0.1:1", "shop"));
        assert_eq!(connection.token.as_ref().and_then(Token::get).as_deref(), Some("t0k"));
        assert!(!format!("{connection:?}").contains("t0k"));
    }

    #[test]
    fn kubeconfig_errors_state_the_reason() {
        let reason = |text: &str| read(text).unwrap_err().to_string();
        assert!(reason("clusters: []").contains("no current-context"));
        assert!(reason(CONFIG).contains("no user named `u`"));
        assert!(
            reason(&format!("{CONFIG}users: [{{name: u, user: {{exec: {{command: aws}}}}}}]"))
                .contains("signs in with a program")
        );
        let authority =
            CONFIG.replace("'http://127.0.0.1:1/'", "'https://127.0.0.1:1', certificate-authority-data: '!'");
        assert!(reason(&format!("{authority}users: [{{name: u, user: {{}}}}]")).contains("not base64"));
    }
}
