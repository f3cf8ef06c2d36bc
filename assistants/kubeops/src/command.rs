//! Commands: what may be read and what may be changed, as typed values instead of shell command lines.

use std::collections::BTreeMap;
use std::fmt::Write;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kinds::Kind;

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// Lists objects, or shows one.
    Get,
    /// Finds objects by part of their names.
    Find,
    /// Shows an object in detail, with its events.
    Describe,
    /// Shows the log of a pod, or of the pods of a workload.
    Logs,
    /// Lists events.
    Events,
    /// Shows the use of CPU and memory.
    Top,
    /// Shows the state of a rollout.
    RolloutStatus,
    /// Lists the revisions of a deployment.
    RolloutHistory,
    /// Deletes an object.
    Delete,
    /// Sets the number of replicas.
    Scale,
    /// Replaces the pods of a workload one after another.
    RolloutRestart,
    /// Returns to an earlier revision.
    RolloutUndo,
    /// Pauses a rollout.
    RolloutPause,
    /// Resumes a rollout.
    RolloutResume,
    /// Sets the image of a container.
    SetImage,
    /// Sets limits or requests of resources.
    SetResources,
    /// Sets environment variables.
    SetEnv,
    /// Sets or removes labels.
    Label,
    /// Sets or removes annotations.
    Annotate,
    /// Keeps new pods from starting on a node.
    Cordon,
    /// Lets pods start on a node again.
    Uncordon,
    /// Evicts the pods of a node.
    Drain,
    /// Applies a manifest.
    Apply,
    /// Runs a program in a container of a pod, without a shell and without a terminal.
    Exec,
}

impl Verb {
    /// Whether the verb only reads.
    #[must_use]
    pub const fn is_read(self) -> bool {
        matches!(
            self,
            Self::Get
                | Self::Find
                | Self::Describe
                | Self::Logs
                | Self::Events
                | Self::Top
                | Self::RolloutStatus
                | Self::RolloutHistory
        )
    }

    /// Returns the verb as kubectl spells it.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Get | Self::Find => "get",
            Self::Describe => "describe",
            Self::Logs => "logs",
            Self::Events => "events",
            Self::Top => "top",
            Self::RolloutStatus => "rollout status",
            Self::RolloutHistory => "rollout history",
            Self::Delete => "delete",
            Self::Scale => "scale",
            Self::RolloutRestart => "rollout restart",
            Self::RolloutUndo => "rollout undo",
            Self::RolloutPause => "rollout pause",
            Self::RolloutResume => "rollout resume",
            Self::SetImage => "set image",
            Self::SetResources => "set resources",
            Self::SetEnv => "set env",
            Self::Label => "label",
            Self::Annotate => "annotate",
            Self::Cordon => "cordon",
            Self::Uncordon => "uncordon",
            Self::Drain => "drain",
            Self::Apply => "apply",
            Self::Exec => "exec",
        }
    }
}

/// A command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// What to do.
    pub verb: Verb,
    /// The kind of the object, such as `pod` or `deployment`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The exact name of the object. Without one, `get` lists the objects of the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A part of the names to list or to find.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub like: Option<String>,
    /// The namespace. Default: that of the settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Whether to list the objects of all namespaces.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all_namespaces: bool,
    /// Whether to list only objects with problems.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unhealthy: bool,
    /// A label selector, such as `app=web`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// For `get` of pods: only those that run on this node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// For `scale`: the number of replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
    /// For `set_image`: the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The container, if a pod has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// For `logs`: the number of lines. Default: 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<u32>,
    /// For `logs`: whether to show the log of the container that ran before the last restart.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub previous: bool,
    /// For `logs`: only lines from the last so many seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_seconds: Option<u32>,
    /// For `set_resources`: the limits, such as `memory: 512Mi`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, String>,
    /// For `set_resources`: the requests, such as `cpu: 100m`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<String, String>,
    /// For `label`, `annotate` and `set_env`: names and values; no value removes the name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, Option<String>>,
    /// For `rollout_undo`: the revision. Default: the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u32>,
    /// For `apply`: the manifest of one object, in YAML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<String>,
    /// For `exec`: the program and its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub program: Vec<String>,
    /// For `get` of one object: whether to show its manifest as YAML.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub as_yaml: bool,
    /// The state of the object when the approval was requested. Set by the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub basis: Option<Basis>,
}

/// The object that an approval is for, and what the dry run showed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Basis {
    /// The uid of the object; empty for an object that does not exist yet.
    pub uid: String,
    /// The digest of everything but the status, the managed fields and the version.
    pub digest: String,
    /// What the command would change.
    pub effect: String,
}

/// Why a command is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidCommand(String);

/// The maximum number of lines of a log.
pub(crate) const MAX_TAIL: u32 = 1_000;
/// The maximum number of words in a program and its arguments.
const MAX_PROGRAM_WORDS: usize = 32;
/// The maximum number of replicas.
const MAX_REPLICAS: u32 = 1_000;

impl Command {
    /// Creates a command without arguments.
    #[must_use]
    pub fn new(verb: Verb) -> Self {
        Self {
            verb,
            kind: None,
            name: None,
            like: None,
            namespace: None,
            all_namespaces: false,
            unhealthy: false,
            selector: None,
            node: None,
            replicas: None,
            image: None,
            container: None,
            tail: None,
            previous: false,
            since_seconds: None,
            limits: BTreeMap::new(),
            requests: BTreeMap::new(),
            values: BTreeMap::new(),
            revision: None,
            manifest: None,
            program: Vec::new(),
            as_yaml: false,
            basis: None,
        }
    }

    /// Sets the object.
    #[must_use]
    pub fn on(self, kind: &str, name: &str, namespace: Option<&str>) -> Self {
        Self {
            kind: Some(kind.to_owned()),
            name: Some(name.to_owned()),
            namespace: namespace.map(str::to_owned),
            ..self
        }
    }

    /// Returns the equivalent kubectl command line. It is shown to users, and never run.
    #[must_use]
    pub fn line(&self) -> String {
        let mut line = format!("kubectl {}", self.verb.words());
        let kind = self.kind.as_deref().and_then(Kind::find);
        let singular =
            kind.as_ref().map_or_else(|| self.kind.clone().unwrap_or_default(), |kind| kind.singular.clone());
        match (&self.name, self.verb) {
            (_, Verb::Apply) => line.push_str(" -f -"),
            (Some(name), Verb::Drain) => {
                push(&mut line, &format!("{name} --ignore-daemonsets --delete-emptydir-data --force"))
            }
            (Some(name), Verb::Cordon | Verb::Uncordon) => push(&mut line, name),
            (Some(name), Verb::Logs | Verb::Exec) if singular == "pod" => push(&mut line, name),
            (
                Some(name),
                Verb::RolloutRestart
                | Verb::RolloutUndo
                | Verb::RolloutPause
                | Verb::RolloutResume
                | Verb::RolloutStatus
                | Verb::RolloutHistory
                | Verb::SetImage
                | Verb::SetResources
                | Verb::SetEnv
                | Verb::Logs,
            ) => push(&mut line, &format!("{singular}/{name}")),
            (Some(name), _) => push(&mut line, &format!("{singular} {name}")),
            (None, Verb::Events) => {}
            (None, _) => push(&mut line, kind.as_ref().map_or(&*singular, |kind| &kind.plural)),
        }
        self.write_options(&mut line);
        let is_namespaced = kind.is_none_or(|kind| kind.is_namespaced);
        match &self.namespace {
            _ if self.all_namespaces => line.push_str(" --all-namespaces"),
            Some(namespace) if is_namespaced && namespace != "default" => push(&mut line, &format!("-n {namespace}")),
            _ => {}
        }
        if self.as_yaml {
            line.push_str(" -o yaml");
        }
        if self.verb == Verb::Exec {
            push(&mut line, &format!("-- {}", self.program.join(" ")));
        }
        line
    }

    fn write_options(&self, line: &mut String) {
        let joined = |values: &BTreeMap<String, String>| {
            values.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(",")
        };
        if let Some(replicas) = self.replicas {
            push(line, &format!("--replicas={replicas}"));
        }
        if let Some(image) = &self.image {
            push(line, &format!("{}={image}", self.container.as_deref().unwrap_or("*")));
        } else if let Some(container) = &self.container {
            push(line, &format!("-c {container}"));
        }
        for (name, values) in [("limits", &self.limits), ("requests", &self.requests)] {
            if !values.is_empty() {
                push(line, &format!("--{name}={}", joined(values)));
            }
        }
        for (name, value) in &self.values {
            match value {
                Some(value) => push(line, &format!("{name}={value}")),
                None => push(line, &format!("{name}-")),
            }
        }
        if let Some(revision) = self.revision {
            push(line, &format!("--to-revision={revision}"));
        }
        if let Some(selector) = &self.selector {
            push(line, &format!("-l {selector}"));
        }
        if let Some(node) = &self.node {
            push(line, &format!("--field-selector spec.nodeName={node}"));
        }
        if let Some(tail) = self.tail {
            push(line, &format!("--tail={tail}"));
        }
        if self.previous {
            line.push_str(" --previous");
        }
        if let Some(seconds) = self.since_seconds {
            push(line, &format!("--since={seconds}s"));
        }
    }

    /// Checks the names and numbers. No value may contain a character with a special meaning in a shell.
    ///
    /// # Errors
    /// The first invalid value.
    pub fn check(&self) -> Result<(), InvalidCommand> {
        let invalid = |what: &str, value: &str| {
            let value: String = value.chars().filter(|c| !c.is_control()).take(80).collect();
            Err(InvalidCommand(format!("`{value}` is not a valid {what}")))
        };
        for (what, value) in [
            ("name", &self.name),
            ("namespace", &self.namespace),
            ("container", &self.container),
            ("part of a name", &self.like),
        ] {
            match value {
                Some(value) if !is_name(value) => return invalid(what, value),
                _ => {}
            }
        }
        let is_word = |text: &str, others: &str| {
            !text.is_empty()
                && text.len() <= 512
                && text.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(c))
        };
        if let Some(image) = self.image.as_ref().filter(|image| !is_word(image, "._/:@-") || image.starts_with('-')) {
            return invalid("image", image);
        }
        if let Some(selector) = self.selector.as_ref().filter(|selector| !is_word(selector, "._/-=!,")) {
            return invalid("selector", selector);
        }
        for (name, value) in self.limits.iter().chain(&self.requests) {
            if !matches!(&**name, "cpu" | "memory") {
                return invalid("resource", name);
            }
            if !is_word(value, ".") || !value.starts_with(|c: char| c.is_ascii_digit()) {
                return invalid("quantity", value);
            }
        }
        for (name, value) in &self.values {
            if !is_word(name, "._/-") || name.starts_with('-') {
                return invalid("name", name);
            }
            if let Some(value) = value.as_ref().filter(|value| !value.is_empty() && !is_word(value, "._/:@-")) {
                return invalid("value", value);
            }
        }
        self.check_program()?;
        self.check_numbers()
    }

    /// Checks the program of `exec`. Shells and interpreters are refused, because one argument could make them do anything.
    fn check_program(&self) -> Result<(), InvalidCommand> {
        const SHELLS: [&str; 24] = [
            "sh", "bash", "ash", "dash", "zsh", "fish", "csh", "ksh", "busybox", "python", "python2", "python3",
            "perl", "ruby", "node", "php", "lua", "awk", "xargs", "nsenter", "chroot", "su", "sudo", "kubectl",
        ];
        let Some(first) = self.program.first() else { return Ok(()) };
        if self.program.len() > MAX_PROGRAM_WORDS {
            return Err(InvalidCommand(format!(
                "a program and its arguments may have at most {MAX_PROGRAM_WORDS} words"
            )));
        }
        for word in &self.program {
            let is_valid = (1..=256).contains(&word.len())
                && word.chars().all(|c| c.is_ascii_alphanumeric() || "._/:@=,+%-".contains(c));
            if !is_valid {
                let word: String = word.chars().filter(|c| !c.is_control()).take(80).collect();
                return Err(InvalidCommand(format!(
                    "`{word}` is not a valid argument: it may have letters, digits and . _ / : @ = , + % -"
                )));
            }
            if word.contains("secrets") || word.contains("environ") {
                return Err(InvalidCommand(format!("`{word}` is not read, because it may contain secret values")));
            }
        }
        match first.rsplit('/').next().unwrap_or_default() {
            "env" | "printenv" => {
                Err(InvalidCommand(format!("`{first}` is not run, because it shows values of environment variables")))
            }
            name if SHELLS.contains(&name) => Err(InvalidCommand(format!(
                "`{first}` is not run, because it could do anything; name the program itself"
            ))),
            _ => Ok(()),
        }
    }

    fn check_numbers(&self) -> Result<(), InvalidCommand> {
        if let Some(replicas) = self.replicas.filter(|replicas| *replicas > MAX_REPLICAS) {
            return Err(InvalidCommand(format!("{replicas} replicas are more than the limit of {MAX_REPLICAS}")));
        }
        if let Some(tail) = self.tail.filter(|tail| *tail == 0 || *tail > MAX_TAIL) {
            return Err(InvalidCommand(format!("{tail} lines: choose 1 to {MAX_TAIL}")));
        }
        let missing = |what: &str| Err(InvalidCommand(format!("`{}` needs {what}", self.verb.words())));
        match self.verb {
            Verb::Get | Verb::Events | Verb::Top | Verb::Apply => Ok(()),
            Verb::Find if self.like.is_none() => missing("part of a name"),
            Verb::Find => Ok(()),
            _ if self.name.is_none() => missing("the name of an object"),
            Verb::Scale if self.replicas.is_none() => missing("a number of replicas"),
            Verb::SetImage if self.image.is_none() => missing("an image"),
            Verb::SetResources if self.limits.is_empty() && self.requests.is_empty() => missing("limits or requests"),
            Verb::SetEnv | Verb::Label | Verb::Annotate if self.values.is_empty() => missing("names and values"),
            Verb::Exec if self.program.is_empty() => missing("a program"),
            _ => Ok(()),
        }
    }
}

fn push(line: &mut String, word: &str) {
    let _infallible = write!(line, " {word}");
}

/// Whether the text can be the name of an object: lower-case letters, digits, `-` and `.`; names of RBAC objects may also contain `:`.
pub(crate) fn is_name(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.:".contains(c);
    let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (1..=253).contains(&text.len()) && text.chars().all(is_inner) && text.starts_with(is_end) && text.ends_with(is_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_shown_as_kubectl_command_lines() {
        let line = |command: Command| command.line();
        assert_eq!(line(Command::new(Verb::Delete).on("pods", "web-1", Some("default"))), "kubectl delete pod web-1");
        let scale = Command { replicas: Some(3), ..Command::new(Verb::Scale).on("deploy", "web", Some("prod")) };
        assert_eq!(line(scale), "kubectl scale deployment web --replicas=3 -n prod");
        let image = Command {
            image: Some("nginx:1.28".to_owned()),
            container: Some("web".to_owned()),
            ..Command::new(Verb::SetImage).on("deployment", "web", None)
        };
        assert_eq!(line(image), "kubectl set image deployment/web web=nginx:1.28");
        let logs =
            Command { tail: Some(20), previous: true, ..Command::new(Verb::Logs).on("pod", "web-1", Some("prod")) };
        assert_eq!(line(logs), "kubectl logs web-1 --tail=20 --previous -n prod");
        assert_eq!(
            line(Command { kind: Some("po".to_owned()), all_namespaces: true, ..Command::new(Verb::Get) }),
            "kubectl get pods --all-namespaces"
        );
        assert_eq!(
            line(Command::new(Verb::Drain).on("node", "n1", None)),
            "kubectl drain n1 --ignore-daemonsets --delete-emptydir-data --force"
        );
    }

    // S4.52
    #[test]
    fn arguments_with_shell_characters_are_rejected() {
        for name in [
            "web; rm -rf /",
            "$(reboot)",
            "`id`",
            "web|cat",
            "web&&ls",
            "../etc",
            "-A",
            "web\nb",
            "Web",
            "web>x",
            "",
            "a b",
        ] {
            assert!(Command::new(Verb::Delete).on("pod", name, None).check().is_err(), "{name}");
            assert!(Command::new(Verb::Describe).on("pod", "web", Some(name)).check().is_err(), "{name}");
        }
        for image in ["nginx;id", "$(id)", "--x", "nginx 1"] {
            let command =
                Command { image: Some(image.to_owned()), ..Command::new(Verb::SetImage).on("deployment", "web", None) };
            assert!(command.check().is_err(), "{image}");
        }
        assert!(Command::new(Verb::Delete).on("pod", "web-1.x", Some("prod")).check().is_ok());
    }

    #[test]
    fn a_program_must_be_plain_words_and_not_a_shell() {
        let exec = |program: &str| Command {
            program: program.split(' ').map(str::to_owned).collect(),
            ..Command::new(Verb::Exec).on("pod", "web-1", Some("prod"))
        };
        assert_eq!(exec("df -h /data").line(), "kubectl exec web-1 -n prod -- df -h /data");
        assert_eq!(exec("df -h /data").check(), Ok(()));
        for program in [
            "sh -c id",
            "/bin/bash",
            "python3 -V",
            "env",
            "/usr/bin/printenv",
            "cat /var/run/secrets/x",
            "ls;id",
            "ls $(id)",
            "ls |",
            "cat /proc/1/environ",
        ] {
            assert!(exec(program).check().is_err(), "{program}");
        }
        assert_eq!(
            Command::new(Verb::Exec).on("pod", "web-1", None).check().unwrap_err().to_string(),
            "`exec` needs a program"
        );
    }

    #[test]
    fn errors_state_what_a_command_lacks() {
        let error = |command: Command| command.check().unwrap_err().to_string();
        assert_eq!(
            error(Command::new(Verb::Scale).on("deployment", "web", None)),
            "`scale` needs a number of replicas"
        );
        assert_eq!(error(Command::new(Verb::Delete)), "`delete` needs the name of an object");
        let many = Command { replicas: Some(5_000), ..Command::new(Verb::Scale).on("deployment", "web", None) };
        assert!(error(many).contains("more than the limit"));
    }
}
