//! HTTP clients for outgoing calls of the server: to fetch an issuer's keys and to export traces.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, NoProxy, Proxy, Url};

/// The proxy for outgoing calls. Calls to this machine do not use it.
#[derive(Clone, PartialEq, Eq)]
pub struct OutgoingProxy {
    /// The URL, which may contain a user name and password.
    pub url: String,
    /// The destinations for which the proxy is not used, in the format of the variable `NO_PROXY`: hosts, domains and addresses,
    /// separated by commas.
    pub exceptions: Option<String>,
}

impl fmt::Debug for OutgoingProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutgoingProxy").field("exceptions", &self.exceptions).finish_non_exhaustive()
    }
}

/// Creates an HTTP client for requests to a URL. Returns `None` if the proxy's URL is invalid or TLS cannot be set up.
pub(crate) fn client(url: &Url, proxy: Option<&OutgoingProxy>, timeout: Duration) -> Option<Client> {
    let tls = threadkeep::models::client_tls().ok()?;
    let client = Client::builder().tls_backend_preconfigured(tls).timeout(timeout).redirect(Policy::none()).no_proxy();
    let Some(proxy) = proxy.filter(|_| !is_local(url)) else { return client.build().ok() };
    let exceptions = proxy.exceptions.as_deref().and_then(NoProxy::from_string);
    client.proxy(Proxy::all(&proxy.url).ok()?.no_proxy(exceptions)).build().ok()
}

/// Whether a URL refers to this machine.
pub(crate) fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
