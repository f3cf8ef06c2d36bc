//! The resources that the API server knows, and their discovery documents.

use serde_json::{Value, json};

/// A kind of object, as discovery describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The name in paths: `pods`.
    pub plural: String,
    /// The kind: `Pod`.
    pub kind: String,
    /// The short names: `po`.
    pub short: Vec<String>,
    /// Whether objects belong to a namespace.
    pub is_namespaced: bool,
}

impl Resource {
    /// Returns the value of `apiVersion`.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Returns the name with its group, as in error messages.
    #[must_use]
    pub fn qualified(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    fn describe(&self, subresources: bool) -> Vec<Value> {
        let verbs = ["create", "delete", "get", "list", "patch", "update", "watch"];
        let mut entries = vec![json!({
            "name": self.plural, "singularName": self.kind.to_lowercase(), "namespaced": self.is_namespaced,
            "kind": self.kind, "verbs": verbs, "shortNames": self.short,
        })];
        if subresources && matches!(&*self.plural, "deployments" | "statefulsets" | "replicasets") {
            entries.push(json!({
                "name": format!("{}/scale", self.plural), "singularName": "", "namespaced": true, "group": "autoscaling",
                "version": "v1", "kind": "Scale", "verbs": ["get", "patch", "update"],
            }));
        }
        if self.plural == "pods" {
            entries.push(json!({
                "name": "pods/log", "singularName": "", "namespaced": true, "kind": "Pod", "verbs": ["get"],
            }));
            entries.push(json!({
                "name": "pods/eviction", "singularName": "", "namespaced": true, "group": "policy", "version": "v1",
                "kind": "Eviction", "verbs": ["create"],
            }));
        }
        entries
    }
}

/// The built-in kinds: group, version, plural, kind, short names, and whether they are namespaced.
const BUILT_IN: &[(&str, &str, &str, &str, &str, bool)] = &[
    ("", "v1", "pods", "Pod", "po", true),
    ("", "v1", "services", "Service", "svc", true),
    ("", "v1", "configmaps", "ConfigMap", "cm", true),
    ("", "v1", "secrets", "Secret", "", true),
    ("", "v1", "events", "Event", "ev", true),
    ("", "v1", "endpoints", "Endpoints", "ep", true),
    ("", "v1", "serviceaccounts", "ServiceAccount", "sa", true),
    ("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", "pvc", true),
    ("", "v1", "replicationcontrollers", "ReplicationController", "rc", true),
    ("", "v1", "resourcequotas", "ResourceQuota", "quota", true),
    ("", "v1", "limitranges", "LimitRange", "limits", true),
    ("", "v1", "nodes", "Node", "no", false),
    ("", "v1", "namespaces", "Namespace", "ns", false),
    ("", "v1", "persistentvolumes", "PersistentVolume", "pv", false),
    ("apps", "v1", "deployments", "Deployment", "deploy", true),
    ("apps", "v1", "statefulsets", "StatefulSet", "sts", true),
    ("apps", "v1", "daemonsets", "DaemonSet", "ds", true),
    ("apps", "v1", "replicasets", "ReplicaSet", "rs", true),
    ("batch", "v1", "jobs", "Job", "", true),
    ("batch", "v1", "cronjobs", "CronJob", "cj", true),
    ("batch", "v1beta1", "cronjobs", "CronJob", "cj", true),
    ("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", "hpa", true),
    ("autoscaling", "v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler", "hpa", true),
    ("networking.k8s.io", "v1", "ingresses", "Ingress", "ing", true),
    ("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", "netpol", true),
    ("coordination.k8s.io", "v1", "leases", "Lease", "", true),
    ("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", "", true),
    ("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", "pdb", true),
    ("policy", "v1beta1", "poddisruptionbudgets", "PodDisruptionBudget", "pdb", true),
    ("rbac.authorization.k8s.io", "v1", "roles", "Role", "", true),
    ("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", "", true),
    ("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", "", false),
    ("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", "", false),
    ("storage.k8s.io", "v1", "storageclasses", "StorageClass", "sc", false),
    ("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", "crd", false),
    ("metrics.k8s.io", "v1beta1", "pods", "PodMetrics", "", true),
    ("metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics", "", false),
];

/// The kinds of a cluster: the built-in ones, and those of its custom resource definitions.
#[derive(Clone, Debug)]
pub(crate) struct Resources(Vec<Resource>);

impl Resources {
    pub(crate) fn built_in() -> Self {
        let resource =
            |(group, version, plural, kind, short, is_namespaced): &(&str, &str, &str, &str, &str, bool)| Resource {
                group: (*group).to_owned(),
                version: (*version).to_owned(),
                plural: (*plural).to_owned(),
                kind: (*kind).to_owned(),
                short: short.split(' ').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
                is_namespaced: *is_namespaced,
            };
        Self(BUILT_IN.iter().map(resource).collect())
    }

    /// Adds the kind that a custom resource definition declares, in each of its versions.
    pub(crate) fn define(&mut self, definition: &Value) {
        let spec = &definition["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let names = &spec["names"];
        let short = names["shortNames"].as_array().into_iter().flatten().map(text).collect::<Vec<_>>();
        for version in spec["versions"].as_array().into_iter().flatten() {
            self.0.push(Resource {
                group: text(&spec["group"]),
                version: text(&version["name"]),
                plural: text(&names["plural"]),
                kind: text(&names["kind"]),
                short: short.clone(),
                is_namespaced: spec["scope"] == "Namespaced",
            });
        }
    }

    pub(crate) fn of_object(&self, api_version: &str, kind: &str) -> Option<&Resource> {
        self.0.iter().find(|resource| resource.kind == kind && resource.api_version() == api_version)
    }

    pub(crate) fn at(&self, group: &str, version: &str, plural: &str) -> Option<&Resource> {
        self.0.iter().find(|known| known.group == group && known.version == version && known.plural == plural)
    }

    /// Returns the document at `/apis`.
    pub(crate) fn groups(&self) -> Value {
        let mut groups: Vec<Value> = Vec::new();
        for resource in self.0.iter().filter(|resource| !resource.group.is_empty()) {
            let version = json!({ "groupVersion": resource.api_version(), "version": resource.version });
            match groups.iter_mut().find(|group| group["name"] == *resource.group) {
                Some(group) => {
                    if let Some(versions) = group["versions"].as_array_mut()
                        && !versions.contains(&version)
                    {
                        versions.push(version);
                    }
                }
                None => groups.push(json!({
                    "name": resource.group, "versions": [version.clone()], "preferredVersion": version,
                })),
            }
        }
        json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
    }

    /// Returns the document of one group and version; `None` if there is no such group.
    pub(crate) fn list(&self, group: &str, version: &str) -> Option<Value> {
        let known: Vec<&Resource> =
            self.0.iter().filter(|resource| resource.group == group && resource.version == version).collect();
        let first = known.first()?;
        let entries: Vec<Value> =
            known.iter().flat_map(|resource| resource.describe(group != "metrics.k8s.io")).collect();
        Some(json!({
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": first.api_version(), "resources": entries,
        }))
    }
}
