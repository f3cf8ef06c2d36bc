//! Reading a message: what is asked for, on which object, with which arguments.

use std::collections::BTreeMap;

use crate::command::{Verb, is_name};
use crate::kinds::{Kind, is_plural, kind_word};

/// The longest message that is read, in characters.
const MAX_CHARACTERS: usize = 4_000;
/// The most words that are read.
const MAX_WORDS: usize = 300;

/// A message, read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Reading {
    pub(super) act: Option<Act>,
    pub(super) verb: Option<Verb>,
    /// Whether the verb is only implied by other words, such as "anything crashing".
    pub(super) is_implied: bool,
    pub(super) kind: Option<String>,
    /// Whether the kind was named in the plural: "pods".
    pub(super) is_plural: bool,
    /// Words that may be the name of an object or a part of it.
    pub(super) names: Vec<String>,
    pub(super) namespace: Option<String>,
    pub(super) all_namespaces: bool,
    pub(super) replicas: Option<Replicas>,
    pub(super) image: Option<String>,
    pub(super) tail: Option<u32>,
    pub(super) previous: bool,
    pub(super) since_seconds: Option<u32>,
    pub(super) selector: Option<String>,
    pub(super) container: Option<String>,
    pub(super) limits: BTreeMap<String, String>,
    pub(super) requests: BTreeMap<String, String>,
    pub(super) values: BTreeMap<String, Option<String>>,
    pub(super) revision: Option<u32>,
    pub(super) manifest: Option<String>,
    pub(super) unhealthy: bool,
    /// Whether the number of objects is asked for.
    pub(super) counts: bool,
    pub(super) pronoun: bool,
    pub(super) pick: Option<Pick>,
    /// Whether several objects are meant: "both", "all of them".
    pub(super) each: bool,
    /// The words, in lower case.
    pub(super) words: Vec<String>,
}

/// A message that is not a command of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Greeting,
    Thanks,
    Capabilities,
    /// "yes", "go ahead", "I approve".
    Consent,
    /// "no", "never mind".
    Refusal,
    /// "did it work?", "what happened?"
    Outcome,
    /// "again".
    Repeat,
    /// "same in production".
    Same,
    /// "which ones differ?"
    Compare,
    /// "bring production up to the same version".
    Align,
    /// "why?"
    Why,
    /// A command that is refused by name.
    Refused(&'static str),
    /// A question for the value of a secret.
    SecretValue,
}

/// How the number of replicas is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replicas {
    To(u32),
    By(i64),
    Times(u32),
    Half,
}

/// One of several objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pick {
    /// From 0.
    At(usize),
    Last,
    Other,
}

/// Commands that this assistant refuses, with the reason.
const REFUSED: [(&str, &str); 11] = [
    ("port-forward", "port-forward needs a terminal of your own"),
    ("port forward", "port-forward needs a terminal of your own"),
    ("edit", "edit opens an editor; say what to change instead, such as an image or a limit"),
    ("cp", "cp copies files from and to a terminal"),
    ("debug", "debug needs a terminal of your own"),
    ("exec", "exec runs programs inside of a container"),
    ("ssh", "exec and ssh run programs inside of a container"),
    ("attach", "attach needs a terminal of your own"),
    ("proxy", "proxy needs a terminal of your own"),
    ("run", "run starts a pod without a workload; paste a manifest with `apply` instead"),
    ("taint", "taint is not supported; cordon or drain the node instead"),
];

/// Words that have no part in names.
const STOP_WORDS: &[&str] = &[
    "a",
    "about",
    "above",
    "actually",
    "afterwards",
    "again",
    "ago",
    "alive",
    "all",
    "also",
    "am",
    "an",
    "and",
    "any",
    "anything",
    "are",
    "as",
    "ask",
    "at",
    "available",
    "back",
    "bad",
    "be",
    "been",
    "before",
    "being",
    "both",
    "bring",
    "but",
    "by",
    "can",
    "check",
    "chance",
    "cluster",
    "command",
    "could",
    "count",
    "cpu",
    "crash",
    "crashed",
    "crashing",
    "crashlooping",
    "current",
    "currently",
    "decode",
    "details",
    "did",
    "died",
    "differ",
    "different",
    "do",
    "does",
    "doing",
    "done",
    "dont",
    "down",
    "each",
    "error",
    "errors",
    "every",
    "everything",
    "exist",
    "exists",
    "failed",
    "failing",
    "fails",
    "few",
    "fifth",
    "find",
    "fine",
    "first",
    "for",
    "fourth",
    "from",
    "gb",
    "get",
    "give",
    "go",
    "going",
    "gone",
    "good",
    "got",
    "great",
    "had",
    "happen",
    "happened",
    "happening",
    "has",
    "have",
    "he",
    "health",
    "healthy",
    "hello",
    "help",
    "here",
    "hey",
    "hi",
    "how",
    "i",
    "id",
    "if",
    "image",
    "images",
    "in",
    "info",
    "inside",
    "instead",
    "into",
    "is",
    "isnt",
    "it",
    "its",
    "itself",
    "just",
    "k8s",
    "keys",
    "kind",
    "kindly",
    "kubectl",
    "kubernetes",
    "last",
    "latest",
    "left",
    "let",
    "lets",
    "like",
    "limit",
    "limits",
    "line",
    "lines",
    "list",
    "live",
    "long",
    "look",
    "looking",
    "looks",
    "many",
    "matter",
    "may",
    "maybe",
    "me",
    "mean",
    "memory",
    "mi",
    "might",
    "mine",
    "minute",
    "minutes",
    "more",
    "most",
    "much",
    "must",
    "my",
    "named",
    "names",
    "name",
    "namespace",
    "namespaces",
    "need",
    "new",
    "newest",
    "next",
    "no",
    "not",
    "now",
    "number",
    "of",
    "off",
    "ok",
    "okay",
    "old",
    "on",
    "once",
    "one",
    "ones",
    "only",
    "oom",
    "or",
    "other",
    "our",
    "out",
    "over",
    "over",
    "please",
    "pls",
    "previous",
    "previously",
    "print",
    "problem",
    "problems",
    "pull",
    "put",
    "quick",
    "quickly",
    "ready",
    "real",
    "really",
    "recent",
    "replica",
    "replicas",
    "restarted",
    "restarting",
    "restarts",
    "result",
    "right",
    "running",
    "runs",
    "same",
    "say",
    "says",
    "second",
    "see",
    "seem",
    "seems",
    "set",
    "she",
    "should",
    "show",
    "sick",
    "since",
    "so",
    "some",
    "something",
    "stand",
    "state",
    "status",
    "still",
    "stuck",
    "stuff",
    "sure",
    "take",
    "tell",
    "than",
    "thank",
    "thanks",
    "that",
    "thats",
    "the",
    "their",
    "them",
    "then",
    "there",
    "these",
    "they",
    "thing",
    "things",
    "third",
    "this",
    "those",
    "time",
    "to",
    "today",
    "too",
    "total",
    "trouble",
    "try",
    "trying",
    "two",
    "up",
    "us",
    "usage",
    "use",
    "used",
    "using",
    "value",
    "values",
    "version",
    "versions",
    "very",
    "want",
    "was",
    "we",
    "well",
    "were",
    "what",
    "whats",
    "when",
    "where",
    "which",
    "who",
    "why",
    "will",
    "with",
    "working",
    "works",
    "work",
    "would",
    "wrong",
    "yes",
    "yet",
    "you",
    "your",
    "unhealthy",
    "broken",
    "pending",
    "evicted",
    "crashloopbackoff",
    "oomkilled",
    "imagepullbackoff",
    "instances",
    "instance",
    "copies",
    "copy",
    "app",
    "apps",
    "application",
    "workload",
    "workloads",
    "resource",
    "resources",
    "object",
    "objects",
    "deployed",
    "created",
    "exactly",
    "detail",
    "latency",
    "traffic",
    "hour",
    "hours",
    "seconds",
    "sec",
    "min",
    "mins",
    "env",
    "environment",
    "variable",
    "label",
    "labels",
    "annotation",
    "rollout",
    "cant",
    "doesnt",
    "wont",
    "has",
    "having",
    "issue",
    "issues",
    "dead",
    "ill",
    "thx",
    "cool",
    "perfect",
    "nice",
    "fully",
    "completely",
    "entirely",
    "everyone",
    "team",
    "guys",
    "folks",
    "bot",
    "quite",
    "via",
    "per",
    "whole",
    "entire",
    "own",
    "owner",
    "belongs",
    "its",
    "hes",
    "shes",
    "theyre",
    "were",
    "youre",
    "im",
    "ive",
    "id",
    "lot",
];

/// Verbs: the words, and what they mean. Longer ones come first.
const VERBS: &[(&str, Verb)] = &[
    ("rollout restart", Verb::RolloutRestart),
    ("rollout undo", Verb::RolloutUndo),
    ("rollout status", Verb::RolloutStatus),
    ("rollout history", Verb::RolloutHistory),
    ("rollout pause", Verb::RolloutPause),
    ("rollout resume", Verb::RolloutResume),
    ("status of the rollout", Verb::RolloutStatus),
    ("history of", Verb::RolloutHistory),
    ("revisions", Verb::RolloutHistory),
    ("revision history", Verb::RolloutHistory),
    ("set image", Verb::SetImage),
    ("change the image", Verb::SetImage),
    ("update the image", Verb::SetImage),
    ("set resources", Verb::SetResources),
    ("set env", Verb::SetEnv),
    ("roll back", Verb::RolloutUndo),
    ("rollback", Verb::RolloutUndo),
    ("roll it back", Verb::RolloutUndo),
    ("roll that back", Verb::RolloutUndo),
    ("revert", Verb::RolloutUndo),
    ("undo", Verb::RolloutUndo),
    ("get rid of", Verb::Delete),
    ("delete", Verb::Delete),
    ("remove", Verb::Delete),
    ("kill", Verb::Delete),
    ("destroy", Verb::Delete),
    ("terminate", Verb::Delete),
    ("nuke", Verb::Delete),
    ("wipe", Verb::Delete),
    ("rm", Verb::Delete),
    ("del", Verb::Delete),
    ("uncordon", Verb::Uncordon),
    ("cordon", Verb::Cordon),
    ("drain", Verb::Drain),
    ("scale", Verb::Scale),
    ("resize", Verb::Scale),
    ("restart", Verb::RolloutRestart),
    ("bounce", Verb::RolloutRestart),
    ("reboot", Verb::RolloutRestart),
    ("recycle", Verb::RolloutRestart),
    ("redeploy", Verb::RolloutRestart),
    ("pause", Verb::RolloutPause),
    ("unpause", Verb::RolloutResume),
    ("resume", Verb::RolloutResume),
    ("annotate", Verb::Annotate),
    ("label", Verb::Label),
    ("apply", Verb::Apply),
    ("tail", Verb::Logs),
    ("logs", Verb::Logs),
    ("log", Verb::Logs),
    ("events", Verb::Events),
    ("event", Verb::Events),
    ("top", Verb::Top),
    ("describe", Verb::Describe),
    ("inspect", Verb::Describe),
    ("details", Verb::Describe),
    ("detail", Verb::Describe),
    ("info", Verb::Describe),
    ("tell me about", Verb::Describe),
    ("more about", Verb::Describe),
    ("get", Verb::Get),
    ("list", Verb::Get),
    ("listing", Verb::Get),
    ("showing", Verb::Get),
    ("getting", Verb::Get),
    ("describing", Verb::Describe),
    ("show", Verb::Get),
    ("display", Verb::Get),
    ("fetch", Verb::Get),
    ("give me", Verb::Get),
    ("see", Verb::Get),
    ("status", Verb::Get),
    ("state", Verb::Get),
    ("health", Verb::Get),
    ("healthy", Verb::Get),
    ("ready", Verb::Get),
    ("running", Verb::Get),
    ("how many", Verb::Get),
    ("what", Verb::Get),
    ("which", Verb::Get),
    ("are there", Verb::Get),
    ("is there", Verb::Get),
    ("find", Verb::Get),
    ("check", Verb::Get),
];

/// Reads a message.
pub(super) fn read(message: &str) -> Reading {
    let text: String = message.chars().take(MAX_CHARACTERS).collect();
    let (text, manifest) = take_manifest(&text);
    let originals: Vec<String> =
        text.split_whitespace().take(MAX_WORDS).map(clean).filter(|word| !word.is_empty()).collect();
    let mut reading = Reading {
        manifest,
        words: originals.iter().map(|word| word.to_lowercase().replace(['\'', '’'], "")).collect(),
        ..Reading::default()
    };
    let mut used = vec![false; originals.len()];
    let words = reading.words.clone();
    let joined = words.join(" ");
    reading.read_flags(&originals, &mut used);
    reading.read_namespace(&mut used);
    reading.read_amounts(&originals, &mut used);
    reading.read_kind(&mut used);
    reading.read_verb(&joined, &mut used);
    reading.read_references(&joined, &mut used);
    reading.read_names(&originals, &used);
    reading.act = reading.find_act(&joined);
    reading
}

/// Takes the manifest out of a message: a block of code that has a kind.
fn take_manifest(text: &str) -> (String, Option<String>) {
    let parts: Vec<&str> = text.splitn(3, "```").collect();
    if let [before, block, after] = parts[..]
        && block.contains("kind:")
    {
        let block = block.trim_start().strip_prefix("yaml").unwrap_or(block);
        return (format!("{before} {after}"), Some(block.trim().to_owned()));
    }
    (text.to_owned(), None)
}

/// Removes punctuation around a word.
fn clean(word: &str) -> String {
    let quotes = ['`', '"', '“', '”', '\'', '‘', '’', '*', '(', ')', '[', ']', '<', '>', '{', '}'];
    word.trim_matches(quotes).trim_end_matches(['.', ',', '?', '!', ';', ':', '…']).trim_matches(quotes).to_owned()
}

fn number_of(word: &str) -> Option<u32> {
    const NUMBERS: [&str; 13] =
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
    word.parse()
        .ok()
        .or_else(|| NUMBERS.iter().position(|number| *number == word).and_then(|at| u32::try_from(at).ok()))
}

impl Reading {
    fn word(&self, at: usize) -> &str {
        self.words.get(at).map_or("", String::as_str)
    }

    pub(super) fn has(&self, word: &str) -> bool {
        self.words.iter().any(|own| own == word)
    }

    pub(super) fn has_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.has(word))
    }

    /// Whether words follow one another in the message.
    pub(super) fn says(&self, phrase: &str) -> bool {
        let joined = format!(" {} ", self.words.join(" "));
        joined.contains(&format!(" {phrase} "))
    }

    /// Reads the options of kubectl: `-n prod`, `--tail=20`, `-l app=web`.
    fn read_flags(&mut self, originals: &[String], used: &mut [bool]) {
        let mut at = 0;
        while at < originals.len() {
            let word = originals[at].clone();
            let Some(flag) = word.strip_prefix('-') else {
                at += 1;
                continue;
            };
            used[at] = true;
            let flag = flag.trim_start_matches('-');
            let (name, inline) =
                flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value.to_owned())));
            let takes_value = matches!(
                name,
                "n" | "namespace"
                    | "l"
                    | "selector"
                    | "c"
                    | "container"
                    | "tail"
                    | "replicas"
                    | "since"
                    | "to-revision"
                    | "limits"
                    | "requests"
            );
            let value = match inline {
                Some(value) => value,
                None if takes_value && at + 1 < originals.len() => {
                    at += 1;
                    used[at] = true;
                    originals[at].clone()
                }
                None => String::new(),
            };
            self.set_flag(name, value);
            at += 1;
        }
    }

    fn set_flag(&mut self, name: &str, value: String) {
        match name {
            "n" | "namespace" => self.namespace = Some(value.to_lowercase()),
            "A" | "all-namespaces" => self.all_namespaces = true,
            "l" | "selector" => self.selector = Some(value),
            "c" | "container" => self.container = Some(value),
            "p" | "previous" => self.previous = true,
            "tail" => self.tail = value.parse().ok(),
            "replicas" => self.replicas = value.parse().ok().map(Replicas::To),
            "to-revision" => self.revision = value.parse().ok(),
            "since" => self.since_seconds = duration(&value),
            "limits" | "requests" => {
                let target = if name == "limits" { &mut self.limits } else { &mut self.requests };
                target.extend(
                    value
                        .split(',')
                        .filter_map(|pair| pair.split_once('='))
                        .map(|(name, value)| (name.to_owned(), value.to_owned())),
                );
            }
            _ => {}
        }
    }

    /// Reads "in prod", "in the prod namespace", "namespace prod", "across all namespaces".
    fn read_namespace(&mut self, used: &mut [bool]) {
        const NOT_NAMESPACES: &[&str] = &[
            "total",
            "there",
            "here",
            "detail",
            "details",
            "it",
            "that",
            "this",
            "general",
            "short",
            "progress",
            "use",
            "parallel",
            "case",
            "order",
            "trouble",
            "them",
            "default-",
            "logs",
            "full",
            "cluster",
            "k8s",
            "kubernetes",
            "crashloopbackoff",
            "pending",
            "production-",
            "memory",
            "yaml",
            "json",
            "my",
            "our",
            "error",
            "crash",
            "fact",
            "which",
            "what",
            "one",
            "its",
            "time",
            "last",
            "past",
        ];
        for at in 0..self.words.len() {
            let word = self.word(at).to_owned();
            if matches!(&*word, "namespaces" | "cluster" | "everywhere") {
                let before: Vec<&str> = (at.saturating_sub(3)..at).map(|before| self.word(before)).collect();
                let is_all = word == "everywhere"
                    || before
                        .iter()
                        .any(|before| matches!(*before, "all" | "every" | "across" | "any" | "whole" | "entire"));
                if is_all {
                    self.all_namespaces = true;
                    used[at] = true;
                }
            }
            if used[at] {
                continue;
            }
            if matches!(&*word, "namespace" | "ns") {
                let next = self.word(at + 1).to_owned();
                if is_candidate(&next) && !used.get(at + 1).copied().unwrap_or(true) {
                    (used[at], used[at + 1]) = (true, true);
                    self.namespace = Some(next);
                } else if at > 0
                    && is_candidate(self.word(at - 1))
                    && !matches!(self.word(at - 1), "each" | "every" | "any")
                {
                    (used[at], used[at - 1]) = (true, true);
                    self.namespace = Some(self.word(at - 1).to_owned());
                }
                continue;
            }
            if !matches!(&*word, "in" | "from" | "within" | "inside" | "into" | "for" | "on") {
                continue;
            }
            let mut next = at + 1;
            while matches!(self.word(next), "the" | "our" | "my" | "namespace" | "ns" | "a") {
                next += 1;
            }
            let candidate = self.word(next).to_owned();
            let after = self.word(next + 1);
            let names_namespace =
                matches!(after, "namespace" | "ns") || (next > 0 && matches!(self.word(next - 1), "namespace" | "ns"));
            // "on web-1" and "for web" name objects; "for staging" names a namespace only in "same for staging".
            let by_preposition = matches!(&*word, "in" | "from" | "within" | "inside" | "into")
                || (matches!(&*word, "for" | "on")
                    && self.words.iter().any(|word| matches!(&**word, "same" | "likewise")));
            let is_followed_by_kind = kind_word(after).is_some() && !matches!(after, "namespace" | "ns");
            let is_name =
                is_candidate(&candidate) && !NOT_NAMESPACES.contains(&&*candidate) && kind_word(&candidate).is_none();
            if is_name && (names_namespace || (by_preposition && !is_followed_by_kind)) && self.namespace.is_none() {
                used[next] = true;
                used[at] = true;
                if matches!(after, "namespace" | "ns") {
                    used[next + 1] = true;
                }
                self.namespace = Some(candidate);
            }
        }
    }

    /// Reads numbers with their units: replicas, lines, times, images, quantities.
    fn read_amounts(&mut self, originals: &[String], used: &mut [bool]) {
        for at in 0..self.words.len() {
            if used[at] {
                continue;
            }
            let (word, next) = (self.word(at).to_owned(), self.word(at + 1).to_owned());
            let before = if at > 0 { self.word(at - 1).to_owned() } else { String::new() };
            if let Some(number) = number_of(&word) {
                self.read_number(number, at, &before, &next, used);
                continue;
            }
            if let Some(value) = quantity(&originals[at]) {
                let name = if self.has("cpu") && !self.has("memory") && !self.has("ram") { "cpu" } else { "memory" };
                let is_request = self.has_any(&["request", "requests"]);
                let target = if is_request { &mut self.requests } else { &mut self.limits };
                target.insert(name.to_owned(), value);
                used[at] = true;
                continue;
            }
            let original = &originals[at];
            if let Some((name, value)) = original.split_once('=').filter(|(name, _)| !name.is_empty()) {
                used[at] = true;
                if value.contains(':') || value.contains('/') && self.has("image") {
                    self.container = Some(name.to_owned());
                    self.image = Some(value.to_owned());
                } else {
                    self.values.insert(name.to_owned(), Some(value.to_owned()));
                }
            } else if is_image(original) {
                used[at] = true;
                self.image = Some(original.clone());
            }
        }
    }

    fn read_number(&mut self, number: u32, at: usize, before: &str, next: &str, used: &mut [bool]) {
        let unit = |word: &str| word.trim_end_matches('s').to_owned();
        match &*unit(next) {
            "line" => self.tail = Some(number),
            "minute" | "min" | "m" => self.since_seconds = Some(number * 60),
            "hour" | "h" | "hr" => self.since_seconds = Some(number * 3_600),
            "second" | "sec" => self.since_seconds = Some(number),
            "replica" | "copie" | "instance" | "copy" | "pod" if !self.has("how") => {
                let is_relative =
                    matches!(before, "by") || self.has_any(&["more", "add", "another", "extra"]) || self.has("fewer");
                let sign = if self.has_any(&["fewer", "less", "remove", "decrease", "reduce"]) { -1 } else { 1 };
                self.replicas =
                    Some(if is_relative { Replicas::By(sign * i64::from(number)) } else { Replicas::To(number) });
            }
            "more" => self.replicas = Some(Replicas::By(i64::from(number))),
            "fewer" | "les" => self.replicas = Some(Replicas::By(-i64::from(number))),
            _ if matches!(before, "revision" | "rev" | "#") => self.revision = Some(number),
            _ if matches!(before, "number" | "no" | "option") && number > 0 => {
                self.pick = Some(Pick::At(number as usize - 1))
            }
            _ if before == "by" => {
                let sign = if self.has_any(&["down", "decrease", "reduce", "fewer"]) { -1 } else { 1 };
                self.replicas = Some(Replicas::By(sign * i64::from(number)));
            }
            _ if matches!(before, "to" | "at" | "with" | "have") && next != "one" => {
                self.replicas = Some(Replicas::To(number))
            }
            _ if matches!(before, "last" | "tail" | "newest" | "latest") && number > 1 => self.tail = Some(number),
            _ if self.words.len() <= 3 && !matches!(self.word(at), "one") => self.replicas = Some(Replicas::To(number)),
            _ => return,
        }
        used[at] = true;
    }

    fn read_kind(&mut self, used: &mut [bool]) {
        for at in 0..self.words.len() {
            if used[at] {
                continue;
            }
            let word = self.word(at).to_owned();
            if let Some((kind, name)) = word.split_once('/')
                && let Some(found) = Kind::find(kind)
                && is_name(name)
            {
                used[at] = true;
                self.kind = Some(found.plural);
                self.names.push(name.to_owned());
                continue;
            }
            let pair = format!("{word} {}", self.word(at + 1));
            let (found, length) = match (kind_word(&pair), kind_word(&word)) {
                (Some(kind), _) => (Some(kind), 2),
                (None, kind) => (kind, 1),
            };
            let Some(kind) = found else { continue };
            let is_better = self.kind.is_none() || matches!(self.kind.as_deref(), Some("namespaces" | "events"));
            used[at..(at + length).min(self.words.len())].fill(true);
            if is_better && !(kind.plural == "namespaces" && self.kind.is_some()) {
                self.is_plural = is_plural(&word);
                self.kind = Some(kind.plural);
            }
        }
    }

    fn read_verb(&mut self, joined: &str, used: &mut [bool]) {
        let padded = format!(" {joined} ");
        let at_word = |phrase: &str| padded.find(&format!(" {phrase} "));
        // Of several verbs, a change counts before a read, and a specific read before "show" and "what".
        let rank = |verb: Verb| match verb {
            Verb::Get => 3,
            Verb::Describe => 2,
            verb if verb.is_read() => 1,
            _ => 0,
        };
        let found: Vec<(&str, Verb)> = VERBS.iter().filter(|(phrase, _)| at_word(phrase).is_some()).copied().collect();
        let best = found.iter().min_by_key(|(_, verb)| rank(*verb)).copied();
        self.verb = best.map(|(_, verb)| verb);
        for (phrase, _) in &found {
            for (at, word) in self.words.iter().enumerate() {
                if phrase.split(' ').any(|part| part == word) && !matches!(&**word, "it" | "that") {
                    used[at] = true;
                }
            }
        }
        self.unhealthy = self.has_any(&[
            "crashing",
            "crash",
            "crashlooping",
            "crashloopbackoff",
            "failing",
            "failed",
            "unhealthy",
            "broken",
            "problem",
            "problems",
            "sick",
            "dead",
            "evicted",
            "oomkilled",
            "imagepullbackoff",
            "wrong",
            "trouble",
            "issues",
            "stuck",
            "pending",
        ]) || self.says("not running")
            || self.says("not ready")
            || self.says("not healthy");
        self.counts = self.says("how many") || self.says("number of");
        self.previous |= self.has_any(&["previous", "previously"]) && self.verb == Some(Verb::Logs)
            || [
                "before it died",
                "before it crashed",
                "before the crash",
                "before the restart",
                "before it restarted",
                "last run",
                "before that",
                "previous run",
                "before it was killed",
                "crashed container",
            ]
            .iter()
            .any(|phrase| self.says(phrase));
        self.imply_verb();
    }

    /// Finds what a message asks for that has no verb of a command, or that means more than its verb.
    fn imply_verb(&mut self) {
        let is_weak = matches!(self.verb, None | Some(Verb::Get | Verb::Describe));
        let wants_more = self.has_any(&[
            "raise", "increase", "bump", "lower", "decrease", "reduce", "set", "change", "give", "make", "grow",
            "shrink", "up", "down",
        ]);
        if is_weak && (!self.limits.is_empty() || !self.requests.is_empty()) && wants_more {
            self.verb = Some(Verb::SetResources);
        } else if is_weak && self.image.is_some() {
            let words = [
                "update",
                "upgrade",
                "deploy",
                "set",
                "change",
                "use",
                "switch",
                "bump",
                "roll",
                "ship",
                "put",
                "move",
                "release",
                "downgrade",
                "run",
            ];
            if self.has_any(&words) {
                self.verb = Some(Verb::SetImage);
            }
        } else if is_weak && self.replicas.is_some() && wants_more && self.manifest.is_none() {
            self.verb = Some(Verb::Scale);
        } else if is_weak && self.manifest.is_some() {
            self.verb = Some(Verb::Apply);
        } else if is_weak && self.has_any(&["lines"]) && (self.tail.is_some() || self.previous) {
            self.verb = Some(Verb::Logs);
        } else if is_weak
            && self.has_any(&["cpu", "memory", "ram", "usage", "consuming"])
            && self.has_any(&[
                "usage",
                "using",
                "use",
                "uses",
                "consuming",
                "consumption",
                "most",
                "least",
                "much",
                "top",
            ])
            && !self.has_any(&["limit", "limits", "request", "requests"])
        {
            self.verb = Some(Verb::Top);
        } else if self.verb.is_none() && (self.unhealthy || (self.is_plural && self.words.len() <= 5)) {
            self.verb = Some(Verb::Get);
            self.is_implied = true;
        } else if is_weak
            && self.has("rollout")
            && self.has_any(&["status", "done", "finished", "complete", "progress", "how"])
        {
            self.verb = Some(Verb::RolloutStatus);
        }
        if self.verb == Some(Verb::Scale) {
            if self.has_any(&["double"]) {
                self.replicas = Some(Replicas::Times(2));
            } else if self.has_any(&["halve", "half"]) {
                self.replicas = Some(Replicas::Half);
            }
        } else if self.has_any(&["double", "halve"]) && is_weak {
            self.verb = Some(Verb::Scale);
            self.replicas = Some(if self.has("double") { Replicas::Times(2) } else { Replicas::Half });
        }
        if self.verb == Some(Verb::Logs) && self.says("last line") {
            self.tail = Some(1);
        }
    }

    fn read_references(&mut self, joined: &str, used: &mut [bool]) {
        const ORDINALS: [(&str, Pick); 14] = [
            ("first", Pick::At(0)),
            ("1st", Pick::At(0)),
            ("second", Pick::At(1)),
            ("2nd", Pick::At(1)),
            ("third", Pick::At(2)),
            ("3rd", Pick::At(2)),
            ("fourth", Pick::At(3)),
            ("4th", Pick::At(3)),
            ("fifth", Pick::At(4)),
            ("5th", Pick::At(4)),
            ("sixth", Pick::At(5)),
            ("latter", Pick::Last),
            ("former", Pick::At(0)),
            ("other", Pick::Other),
        ];
        for (at, word) in self.words.clone().iter().enumerate() {
            let next = self.word(at + 1);
            let ordinal = ORDINALS.iter().find(|(name, _)| name == word);
            if let Some((_, pick)) = ordinal
                && self.pick.is_none()
                && (next.is_empty()
                    || matches!(
                        next,
                        "one"
                            | "pod"
                            | "deployment"
                            | "service"
                            | "to"
                            | "in"
                            | "please"
                            | "container"
                            | "statefulset"
                            | "job"
                            | "node"
                            | "of"
                            | "secret"
                            | "again"
                            | "key"
                    ))
            {
                self.pick = Some(*pick);
                used[at] = true;
            }
        }
        if self.says("last one") || self.says("bottom one") {
            self.pick = Some(Pick::Last);
        }
        if self.says("top one") {
            self.pick = Some(Pick::At(0));
            if self.verb == Some(Verb::Top) {
                self.verb = None;
            }
        }
        self.each =
            self.has_any(&["both", "them", "those", "these"]) || self.says("all of them") || self.says("each of");
        self.pronoun = self.each
            || self.has("it")
            || ["that one", "this one", "the same one", "that thing", "its"].iter().any(|phrase| self.says(phrase))
            || (self.has_any(&["that", "this"]) && is_object_pronoun(joined));
    }

    fn read_names(&mut self, originals: &[String], used: &[bool]) {
        for (at, original) in originals.iter().enumerate() {
            let word = &self.words[at];
            if used[at] || original.starts_with('-') || !is_candidate(word) {
                continue;
            }
            if !self.names.contains(word) {
                self.names.push(word.clone());
            }
        }
        // What looks like a full name comes first.
        self.names.sort_by_key(|name| !(name.contains('-') || name.chars().any(|c| c.is_ascii_digit())));
    }

    fn find_act(&self, joined: &str) -> Option<Act> {
        let short = self.words.len() <= 6;
        let is_plain = self.kind.is_none() && self.names.is_empty() && self.replicas.is_none() && self.image.is_none();
        let starts = |phrases: &[&str]| {
            phrases.iter().any(|phrase| joined == *phrase || joined.starts_with(&format!("{phrase} ")))
        };
        if let Some((_, reason)) = REFUSED.iter().find(|(word, _)| self.is_command_word(word, joined)) {
            return Some(Act::Refused(reason));
        }
        let is_change = self.verb.is_some_and(|verb| !verb.is_read());
        if is_change {
            return self.align_act();
        }
        if self.has_any(&["value", "values", "decode", "decoded", "plaintext", "cleartext", "reveal"])
            || (self.has_any(&["password", "token"]) && self.has_any(&["what", "whats", "show", "give"]))
        {
            return Some(Act::SecretValue);
        }
        const OUTCOMES: [&str; 32] = [
            "did it work",
            "did that work",
            "is it gone",
            "is it done",
            "what happened",
            "any luck",
            "did it go through",
            "was it deleted",
            "has it been deleted",
            "did it scale",
            "is it deleted",
            "did it restart",
            "is it finished",
            "did it finish",
            "did you do it",
            "was it approved",
            "is that done",
            "did it succeed",
            "did it fail",
            "how did it go",
            "has it worked",
            "did they approve",
            "is it back",
            "is it up",
            "did the rollout",
            "is it fixed",
            "did it help",
            "what was the result",
            "whats the result",
            "still pending",
            "is it approved",
            "has it finished",
        ];
        if OUTCOMES.iter().any(|phrase| self.says(phrase)) && self.namespace.is_none() {
            return Some(Act::Outcome);
        }
        if self.has_any(&["differ", "differs", "different", "difference", "differences", "compare"]) {
            return Some(Act::Compare);
        }
        if let Some(act) = self.align_act() {
            return Some(act);
        }
        if self.is_repeat(joined, is_plain) {
            return Some(Act::Repeat);
        }
        let is_same = self.namespace.is_some()
            && (self.has("same")
                || starts(&["and in", "and", "what about", "how about", "now in", "now", "also in", "in", "for"]))
            && self.kind.is_none()
            && self.names.is_empty()
            && !is_change
            && !self.unhealthy;
        if is_same {
            return Some(Act::Same);
        }
        if short
            && (joined == "why"
                || starts(&[
                    "why is it",
                    "why is that",
                    "how come",
                    "why did it",
                    "why are they",
                    "whats wrong with it",
                    "what is wrong with it",
                    "why though",
                    "but why",
                    "why exactly",
                    "why does it",
                ])
                || joined == "whats wrong")
            && self.kind.is_none()
            && self.names.is_empty()
        {
            return Some(Act::Why);
        }
        self.social_act(joined, &starts, is_plain, short)
    }

    fn social_act(&self, joined: &str, starts: &dyn Fn(&[&str]) -> bool, is_plain: bool, short: bool) -> Option<Act> {
        if self.says("what can you do")
            || self.says("what do you do")
            || joined == "help"
            || self.says("who are you")
            || self.says("how do you work")
            || self.says("what are you able")
            || self.says("how can you help")
        {
            return Some(Act::Capabilities);
        }
        let has_request = matches!(self.verb, Some(verb) if !(verb == Verb::Get && self.kind.is_none() && !self.pronoun))
            || self.pick.is_some();
        if is_plain
            && !has_request
            && short
            && starts(&["hi", "hello", "hey", "good morning", "good afternoon", "good evening", "yo", "howdy"])
        {
            return Some(Act::Greeting);
        }
        if !has_request
            && starts(&["thanks", "thank you", "thx", "cheers", "great", "perfect", "nice", "cool", "awesome", "ty"])
            && short
        {
            return Some(Act::Thanks);
        }
        if !has_request
            && (starts(&[
                "yes",
                "yep",
                "yeah",
                "approve",
                "approved",
                "i approve",
                "go ahead",
                "do it",
                "confirm",
                "confirmed",
                "lgtm",
                "ok do it",
                "sure",
                "proceed",
                "y",
                "ship it",
                "ok",
                "okay",
            ]) || self.says("i approve")
                || self.says("go ahead"))
            && (self.kind.is_none() || self.says("i approve"))
        {
            return Some(Act::Consent);
        }
        if is_plain
            && !has_request
            && starts(&[
                "no",
                "nope",
                "never mind",
                "nevermind",
                "cancel",
                "stop",
                "forget it",
                "dont",
                "abort",
                "deny",
            ])
        {
            return Some(Act::Refusal);
        }
        None
    }

    fn align_act(&self) -> Option<Act> {
        let is_same = (self.has("same") && self.has_any(&["version", "image", "tag", "release"]))
            || self.has_any(&["match", "align", "sync"]);
        let does = self.has_any(&[
            "bring", "make", "update", "upgrade", "set", "get", "put", "move", "roll", "align", "sync", "match",
            "bump", "give",
        ]);
        (is_same && does && self.image.is_none()).then_some(Act::Align)
    }

    fn is_repeat(&self, joined: &str, is_plain: bool) -> bool {
        const REPEATS: [&str; 18] = [
            "again",
            "once more",
            "retry",
            "refresh",
            "try again",
            "one more time",
            "repeat",
            "repeat that",
            "whats left",
            "what is left",
            "show again",
            "list again",
            "and now",
            "list them again",
            "show them again",
            "check again",
            "same again",
            "what remains",
        ];
        is_plain
            && self.namespace.is_none()
            && REPEATS.iter().any(|phrase| self.says(phrase))
            && self.words.len() <= 7
            && !joined.contains("how many")
    }

    /// Whether a word is used as the command that it names, not as a part of a sentence.
    fn is_command_word(&self, word: &str, joined: &str) -> bool {
        let starts = |prefix: &str| joined == prefix || joined.starts_with(&format!("{prefix} "));
        let leads =
            ["", "please ", "kubectl ", "can you ", "could you ", "can you please ", "lets ", "i want to ", "just "];
        let is_first = leads.iter().any(|lead| starts(&format!("{lead}{word}")));
        let needs_more = matches!(word, "run" | "edit" | "debug" | "proxy" | "attach" | "cp");
        is_first && (!needs_more || self.words.len() > 1)
            || matches!(word, "port-forward" | "port forward" | "exec" | "ssh") && self.says(word)
    }
}

/// Whether "this" or "that" stands for an object: "delete that", "can you scale this to 2".
fn is_object_pronoun(joined: &str) -> bool {
    let words: Vec<&str> = joined.split(' ').collect();
    words.iter().enumerate().any(|(at, word)| {
        let next = words.get(at + 1).copied().unwrap_or_default();
        matches!(*word, "that" | "this")
            && (next.is_empty()
                || matches!(
                    next,
                    "to" | "in" | "please" | "again" | "by" | "for" | "down" | "up" | "back" | "now" | "with" | "too"
                ))
    })
}

/// Whether a word may be a name: it has the form of one, and no other meaning.
fn is_candidate(word: &str) -> bool {
    is_name(word)
        && word.len() >= 2
        && word.len() <= 100
        && !STOP_WORDS.contains(&word)
        && kind_word(word).is_none()
        && number_of(word).is_none()
        && !VERBS.iter().any(|(phrase, _)| *phrase == word)
        && !matches!(
            word,
            "raise"
                | "increase"
                | "bump"
                | "lower"
                | "decrease"
                | "reduce"
                | "change"
                | "update"
                | "upgrade"
                | "deploy"
                | "grow"
                | "shrink"
                | "switch"
                | "add"
                | "remove"
                | "double"
                | "halve"
                | "half"
                | "raised"
                | "make"
                | "lets"
                | "roll"
                | "ship"
                | "move"
                | "release"
                | "match"
                | "align"
                | "sync"
                | "compare"
                | "differs"
                | "difference"
                | "fewer"
                | "less"
                | "extra"
                | "another"
                | "uses"
                | "consuming"
                | "least"
                | "yep"
                | "yeah"
                | "approve"
                | "approved"
                | "confirm"
                | "cancel"
                | "stop"
                | "abort"
                | "deny"
                | "nope"
                | "nevermind"
                | "never"
                | "mind"
                | "ahead"
                | "approval"
                | "request"
                | "requests"
                | "explain"
                | "password"
                | "token"
                | "ram"
                | "replace"
                | "downgrade"
                | "ssh"
                | "exec"
                | "edit"
                | "run"
                | "port-forward"
                | "forward"
                | "port"
                | "debug"
                | "refresh"
                | "retry"
                | "repeat"
                | "remains"
                | "acknowledge"
                | "note"
                | "nothing"
                | "morning"
                | "afternoon"
                | "evening"
                | "oldest"
                | "slow"
                | "slower"
                | "fast"
                | "weird"
                | "happens"
                | "investigate"
                | "diagnose"
                | "troubleshoot"
                | "look"
                | "into"
                | "within"
                | "across"
                | "everywhere"
                | "turn"
                | "start"
                | "started"
                | "starting"
                | "keep"
                | "keeps"
                | "kept"
                | "dying"
                | "die"
                | "dies"
                | "bad"
                | "worked"
                | "finished"
                | "finish"
                | "fixed"
                | "fix"
                | "succeed"
                | "deleted"
                | "scaled"
                | "rolled"
                | "bit"
                | "ten"
                | "last"
                | "revision"
                | "rev"
                | "container"
                | "containers"
                | "quota"
                | "role"
                | "roles"
                | "sth"
                | "whichever"
                | "whatever"
                | "reveal"
                | "plaintext"
                | "cleartext"
                | "decoded"
                | "former"
                | "latter"
                | "sixth"
                | "1st"
                | "2nd"
                | "3rd"
                | "4th"
                | "5th"
                | "howdy"
                | "yo"
                | "cheers"
                | "thx"
                | "ty"
                | "awesome"
        )
}

fn is_image(word: &str) -> bool {
    let Some((name, tag)) = word.rsplit_once(':') else { return false };
    let is_word =
        |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "._/-@".contains(c));
    is_word(name) && is_word(tag) && !word.starts_with("http") && name.chars().any(|c| c.is_ascii_alphabetic())
}

/// Reads a quantity of memory or CPU, such as `512Mi`, `1Gi`, `2gb` or `500m`.
fn quantity(word: &str) -> Option<String> {
    let end = word.find(|c: char| !(c.is_ascii_digit() || c == '.')).filter(|end| *end > 0)?;
    let (number, unit) = word.split_at(end);
    let unit = match &*unit.to_lowercase() {
        "mi" | "mib" | "mb" => "Mi",
        "gi" | "gib" | "gb" | "g" => "Gi",
        "ki" | "kib" => "Ki",
        "m" => "m",
        _ => return None,
    };
    Some(format!("{number}{unit}"))
}

/// Reads a duration such as `10m` or `1h30m` in seconds.
fn duration(text: &str) -> Option<u32> {
    let (mut total, mut number) = (0_u32, 0_u32);
    for letter in text.chars() {
        match letter {
            '0'..='9' => number = number.checked_mul(10)?.checked_add(letter.to_digit(10)?)?,
            's' => total = total.checked_add(std::mem::take(&mut number))?,
            'm' => total = total.checked_add(std::mem::take(&mut number).checked_mul(60)?)?,
            'h' => total = total.checked_add(std::mem::take(&mut number).checked_mul(3_600)?)?,
            _ => return None,
        }
    }
    (total > 0).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_with_their_arguments() {
        let reading = read("scale nginx to 3 in the shop namespace");
        assert_eq!((reading.verb, reading.replicas), (Some(Verb::Scale), Some(Replicas::To(3))));
        assert_eq!((&*reading.names, reading.namespace.as_deref()), (&["nginx".to_owned()][..], Some("shop")));
        let reading = read("logs of the payments deployment, last 20 lines");
        assert_eq!(
            (reading.verb, reading.kind.as_deref(), reading.tail),
            (Some(Verb::Logs), Some("deployments"), Some(20))
        );
        assert_eq!(reading.names, ["payments"]);
        let reading = read("kubectl get po -n prod -l app=web");
        assert_eq!((reading.verb, reading.kind.as_deref()), (Some(Verb::Get), Some("pods")));
        assert_eq!((reading.namespace.as_deref(), reading.selector.as_deref()), (Some("prod"), Some("app=web")));
        assert!(reading.names.is_empty(), "{reading:?}");
        let reading = read("set image deployment/api api=shop-api:2.4.0");
        assert_eq!(
            (reading.verb, reading.kind.as_deref(), reading.container.as_deref()),
            (Some(Verb::SetImage), Some("deployments"), Some("api"))
        );
        assert_eq!((reading.image.as_deref(), &*reading.names), (Some("shop-api:2.4.0"), &["api".to_owned()][..]));
        let reading = read("give the web deployment 512Mi of memory");
        assert_eq!(reading.verb, Some(Verb::SetResources));
        assert_eq!(reading.limits["memory"], "512Mi");
    }

    #[test]
    fn sentences_without_a_request_name_no_object() {
        for message in
            ["note number 3: nothing to do, just acknowledge", "thanks, that was great", "what can you do?", "hi"]
        {
            let reading = read(message);
            assert!(reading.names.is_empty() && reading.kind.is_none(), "{message}: {reading:?}");
        }
    }

    #[test]
    fn commands_that_need_a_terminal_are_refused_by_name() {
        for message in [
            "kubectl exec -it web-1 -- sh",
            "port-forward web 8080:80",
            "edit deployment web",
            "can you ssh into web-1",
        ] {
            assert!(matches!(read(message).act, Some(Act::Refused(_))), "{message}: {:?}", read(message));
        }
    }
}
