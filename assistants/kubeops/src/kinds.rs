//! The kinds of objects that people name, and their paths in the API.

/// A kind of object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// The API group; empty for the core group.
    pub(crate) group: String,
    pub(crate) version: String,
    /// The name in paths: `pods`.
    pub(crate) plural: String,
    /// The name in commands: `pod`.
    pub(crate) singular: String,
    pub(crate) is_namespaced: bool,
}

type Row = (&'static str, &'static str, &'static str, &'static str, bool, &'static [&'static str]);

/// Group, version, plural, singular, whether namespaced, and other names that people use.
const KINDS: &[Row] = &[
    ("", "v1", "pods", "pod", true, &["po", "container", "containers"]),
    ("apps", "v1", "deployments", "deployment", true, &["deploy", "deploys", "dep", "deps"]),
    ("apps", "v1", "statefulsets", "statefulset", true, &["sts", "stateful set", "stateful sets"]),
    ("apps", "v1", "daemonsets", "daemonset", true, &["ds", "daemon set", "daemon sets"]),
    ("apps", "v1", "replicasets", "replicaset", true, &["rs", "replica set", "replica sets"]),
    ("", "v1", "services", "service", true, &["svc", "svcs"]),
    ("", "v1", "configmaps", "configmap", true, &["cm", "cms", "config map", "config maps"]),
    ("", "v1", "secrets", "secret", true, &[]),
    ("", "v1", "nodes", "node", false, &["no"]),
    ("", "v1", "namespaces", "namespace", false, &["ns"]),
    ("", "v1", "events", "event", true, &["ev"]),
    ("", "v1", "endpoints", "endpoints", true, &["ep"]),
    ("", "v1", "serviceaccounts", "serviceaccount", true, &["sa", "service account", "service accounts"]),
    (
        "",
        "v1",
        "persistentvolumeclaims",
        "persistentvolumeclaim",
        true,
        &["pvc", "pvcs", "volume claim", "volume claims"],
    ),
    ("", "v1", "persistentvolumes", "persistentvolume", false, &["pv", "pvs"]),
    ("", "v1", "resourcequotas", "resourcequota", true, &["quota", "quotas"]),
    ("batch", "v1", "jobs", "job", true, &[]),
    ("batch", "v1", "cronjobs", "cronjob", true, &["cj", "cron job", "cron jobs"]),
    ("networking.k8s.io", "v1", "ingresses", "ingress", true, &["ing"]),
    (
        "networking.k8s.io",
        "v1",
        "networkpolicies",
        "networkpolicy",
        true,
        &["netpol", "network policy", "network policies"],
    ),
    (
        "autoscaling",
        "v2",
        "horizontalpodautoscalers",
        "horizontalpodautoscaler",
        true,
        &["hpa", "hpas", "autoscaler", "autoscalers"],
    ),
    ("policy", "v1", "poddisruptionbudgets", "poddisruptionbudget", true, &["pdb", "pdbs"]),
    ("rbac.authorization.k8s.io", "v1", "roles", "role", true, &[]),
    ("rbac.authorization.k8s.io", "v1", "rolebindings", "rolebinding", true, &[]),
    ("rbac.authorization.k8s.io", "v1", "clusterroles", "clusterrole", false, &[]),
    ("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "clusterrolebinding", false, &[]),
    ("storage.k8s.io", "v1", "storageclasses", "storageclass", false, &["sc"]),
    ("apiextensions.k8s.io", "v1", "customresourcedefinitions", "customresourcedefinition", false, &["crd", "crds"]),
];

/// The kinds whose pods have a template, so that they can be restarted or get another image.
pub(crate) const WORKLOADS: [&str; 3] = ["deployments", "statefulsets", "daemonsets"];
/// The kinds that can be scaled.
pub(crate) const SCALABLE: [&str; 3] = ["deployments", "statefulsets", "replicasets"];
/// The kinds that most messages are about.
pub(crate) const USUAL: [&str; 5] = ["deployments", "statefulsets", "daemonsets", "pods", "nodes"];
/// Further kinds whose objects are looked up only for a message that may name one: their lists are long and rarely needed.
pub(crate) const UNUSUAL: [&str; 6] = ["services", "jobs", "cronjobs", "configmaps", "secrets", "ingresses"];
/// The kinds that are searched for an object of unknown kind.
pub(crate) const SEARCHED: [&str; 10] = [
    "deployments",
    "statefulsets",
    "daemonsets",
    "pods",
    "services",
    "jobs",
    "cronjobs",
    "configmaps",
    "secrets",
    "ingresses",
];

impl Kind {
    /// Finds a kind by its plural, singular or short name, optionally with its group (`deployments.apps`). Ignores case.
    pub(crate) fn find(name: &str) -> Option<Self> {
        let name = name.to_lowercase();
        let (name, group) = name.split_once('.').map_or((&*name, None), |(name, group)| (name, Some(group)));
        let row = KINDS.iter().find(|(own, _, plural, singular, _, others)| {
            (*plural == name || *singular == name || others.contains(&name)) && group.is_none_or(|group| group == *own)
        })?;
        Some(Self::of(row))
    }

    fn of((group, version, plural, singular, is_namespaced, _): &Row) -> Self {
        let own = |text: &&str| (*text).to_owned();
        Self {
            group: own(group),
            version: own(version),
            plural: own(plural),
            singular: own(singular),
            is_namespaced: *is_namespaced,
        }
    }

    /// Finds the kind that a manifest names, such as `Deployment` in `apps/v1`.
    pub(crate) fn of_object(api_version: &str, kind: &str) -> Option<Self> {
        Self::find(kind).filter(|found| found.api_version() == api_version)
    }

    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Returns the path of the objects of a namespace, of all namespaces, or of the cluster.
    pub(crate) fn path(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() { "api".to_owned() } else { format!("apis/{}", self.group) };
        match namespace.filter(|_| self.is_namespaced) {
            Some(namespace) => format!("/{root}/{}/namespaces/{namespace}/{}", self.version, self.plural),
            None => format!("/{root}/{}/{}", self.version, self.plural),
        }
    }
}

/// Whether a word of a message names a kind. Words such as "no" and "dep" do so only in commands.
pub(crate) fn kind_word(word: &str) -> Option<Kind> {
    if matches!(
        word,
        "no" | "dep" | "deps" | "limits" | "container" | "containers" | "role" | "roles" | "quota" | "quotas"
    ) {
        return None;
    }
    Kind::find(word)
}

/// Whether a word names several objects of a kind.
pub(crate) fn is_plural(word: &str) -> bool {
    word.ends_with('s')
        && Kind::find(word).is_some_and(|kind| kind.singular != word && kind.plural.starts_with(&word[..2]))
        || matches!(word, "svcs" | "pvcs" | "deploys")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_plural_singular_and_short_names() {
        for name in ["pods", "pod", "po", "Pod"] {
            assert_eq!(Kind::find(name).unwrap().plural, "pods", "{name}");
        }
        for (name, plural) in [
            ("deploy", "deployments"),
            ("svc", "services"),
            ("sts", "statefulsets"),
            ("cj", "cronjobs"),
            ("no", "nodes"),
        ] {
            assert_eq!(Kind::find(name).unwrap().plural, plural);
        }
        assert_eq!(
            Kind::find("deployments.apps").unwrap().path(Some("prod")),
            "/apis/apps/v1/namespaces/prod/deployments"
        );
        assert_eq!(Kind::find("nodes").unwrap().path(Some("prod")), "/api/v1/nodes");
        assert_eq!(Kind::find("widgets"), None);
    }
}
