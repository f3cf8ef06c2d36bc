//! Flags, namespaces, numbers, images and quantities.

use crate::command::Verb;
use crate::kinds::kind_word;

use super::vocabulary::is_candidate;
use super::{Lexicon, Pick, Reading, Replicas};

impl Reading {
    /// Reads the options of kubectl: `-n prod`, `--tail=20`, `-l app=web`.
    pub(super) fn read_flags(&mut self, originals: &[String], used: &mut [bool]) {
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
                    | "o"
                    | "output"
                    | "sort-by"
                    | "field-selector"
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
            // "Tail -50 of the api pod".
            number if number.parse::<u32>().is_ok() && self.has_any(&["tail", "logs", "log", "lines"]) => {
                self.tail = number.parse().ok();
            }
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

    /// "In jobs", "in search": a namespace of the cluster, even if its name is also a kind or an ordinary word.
    pub(super) fn read_exact_namespace(&mut self, namespaces: &[String], used: &mut [bool]) {
        let at = (1..self.words.len()).find(|at| {
            let word = self.word(*at);
            // "The same for us".
            let is_place = self.word(at - 1) == "in"
                || self.word(at - 1) == "the" && self.word(at + 1) == "one"
                || matches!(self.word(at - 1), "for" | "on" | "to") && self.has_any(&["same", "likewise"]);
            is_place && namespaces.iter().any(|name| name == word)
        });
        if let Some(at) = at.filter(|_| self.namespace.is_none()) {
            self.namespace = Some(self.word(at).to_owned());
            used[at] = true;
        }
        // "And live?": a namespace with the name of an ordinary word.
        let is_lead =
            |word: &String| matches!(&**word, "and" | "now" | "what" | "about" | "how" | "in" | "ok" | "then");
        if let Some((last, lead)) = self.words.split_last()
            && self.namespace.is_none()
            && lead.len() <= 2
            && lead.iter().all(is_lead)
            && (!lead.is_empty() || self.is_question)
            && namespaces.contains(last)
        {
            self.namespace = Some(last.clone());
            used[lead.len()] = true;
        }
        // "In games eu" is `games-eu`.
        let joined = (0..self.words.len().saturating_sub(1)).find_map(|at| {
            let name = format!("{}-{}", self.word(at), self.word(at + 1));
            namespaces.contains(&name).then_some((at, name))
        });
        if let Some((at, name)) = joined.filter(|_| self.namespace.is_none()) {
            used[at..at + 2].fill(true);
            self.namespace = Some(name);
        }
    }

    /// Reads "in prod", "in the prod namespace", "namespace prod", "across all namespaces".
    pub(super) fn read_namespace(&mut self, lexicon: &Lexicon, used: &mut [bool]) {
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
            "tag",
            "image",
            "version",
            "name",
            "spec",
            "config",
            "ticket",
            "channel",
            "meantime",
            "meeting",
            "future",
            "hurry",
            "rush",
            "office",
        ];
        for at in 0..self.words.len() {
            let word = self.word(at).to_owned();
            if matches!(&*word, "namespace" | "ns") && self.means_every_namespace(at) {
                self.all_namespaces = true;
                used[at] = true;
            }
            if matches!(&*word, "namespaces" | "cluster" | "everywhere" | "anywhere" | "cluster-wide" | "clusterwide") {
                let before: Vec<&str> = (at.saturating_sub(3)..at).map(|before| self.word(before)).collect();
                let is_all = matches!(&*word, "everywhere" | "anywhere" | "cluster-wide" | "clusterwide")
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
                // "My namespace is dev-marta".
                let mut next_at = at + 1;
                while matches!(self.word(next_at), "is" | "called" | "named") {
                    next_at += 1;
                }
                let next = self.word(next_at).to_owned();
                if is_candidate(&next) && !used.get(next_at).copied().unwrap_or(true) {
                    used[at..=next_at].fill(true);
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
            // "Put 5 in checkout": an object, if there is no such namespace.
            let is_object = !names_namespace
                && !lexicon.namespaces.is_empty()
                && !lexicon.namespaces.contains(&known_as(&candidate, lexicon))
                && lexicon.linked(&candidate).is_some();
            if is_name
                && !is_object
                && (names_namespace || (by_preposition && !is_followed_by_kind))
                && self.namespace.is_none()
            {
                used[next] = true;
                used[at] = true;
                if matches!(after, "namespace" | "ns") {
                    used[next + 1] = true;
                }
                self.namespace = Some(candidate);
            }
        }
    }

    /// "Is anything crashing in any namespace?": each of them is the place of something else.
    fn means_every_namespace(&self, at: usize) -> bool {
        let is_quantified = at > 0 && matches!(self.word(at - 1), "any" | "every" | "each" | "whatever");
        let is_place = at > 1 && matches!(self.word(at - 2), "in" | "across" | "from" | "within" | "of");
        let has_subject = self.words.iter().enumerate().any(|(other, word)| {
            other != at
                && (matches!(&**word, "anything" | "something" | "everything" | "nothing" | "crashing" | "broken")
                    || kind_word(word).is_some_and(|kind| kind.plural != "namespaces"))
        });
        is_quantified && (is_place || has_subject)
    }

    /// Reads a word that is the name of a namespace of the cluster. "Restart payments" can only mean an object.
    pub(super) fn read_known_namespace(&mut self, lexicon: &Lexicon) {
        let namespaces = &lexicon.namespaces;
        if self.namespace.is_some() {
            self.namespace = self.namespace.take().map(|named| known_as(&named, lexicon));
            // "The dev version in payments-dev" names the namespace twice.
            if let Some(namespace) = &self.namespace {
                let says_again = |name: &String| {
                    crate::cluster::likeness(namespace, name).is_some_and(|fit| fit < 3)
                        && lexicon.linked(name).is_none()
                };
                let is_alias = |name: &String| known_as(name, lexicon) == *namespace && lexicon.linked(name).is_none();
                self.names.retain(|name| !lexicon.is_complete() || !says_again(name) && !is_alias(name));
            }
            // "The weather in lisbon": neither a namespace nor a question about one.
            let is_explicit = self.has_any(&["namespace", "ns"])
                || self.words.iter().any(|word| word.starts_with("-n") || word.starts_with("--namespace"));
            let is_known = self.namespace.as_ref().is_some_and(|name| namespaces.contains(name));
            let is_open = self.kind.is_none() && self.names.is_empty() && self.verb.is_none_or(Verb::is_read);
            if !is_known && !is_explicit && !namespaces.is_empty() && lexicon.is_complete() && is_open {
                self.unknown_place = self.namespace.take();
                self.unknown += 2;
            }
            return;
        }
        // "What deployments has chat got", "which pods does web have": a namespace with the name of an ordinary word.
        let owner = (1..self.words.len()).find(|at| {
            matches!(self.word(at - 1), "has" | "does")
                && matches!(self.word(at + 1), "got" | "have" | "contain")
                && lexicon.has_namespace(self.word(*at))
        });
        if let Some(at) = owner.filter(|_| self.is_plural && self.kind.is_some()) {
            let place = self.word(at).to_owned();
            self.names.retain(|name| *name != place);
            self.namespace = Some(place);
            return;
        }
        let sibling = (0..self.words.len()).find_map(|at| {
            let before = if at > 0 { self.word(at - 1) } else { "" };
            let is_object = matches!(
                before,
                "tell" | "give" | "show" | "let" | "of" | "between" | "with" | "help" | "to" | "wants"
            );
            // "And b", after `team-a`.
            let is_letter = self.word(at).len() == 1
                && self.words.len() <= 3
                && matches!(before, "and" | "in" | "for" | "now" | "about")
                && at + 1 == self.words.len();
            let is_short = is_letter || self.word(at).len() > 1 && super::vocabulary::is_ordinary(self.word(at));
            if is_object || !is_short { None } else { lexicon.sibling_namespace(self.word(at)) }
        });
        if sibling.is_some() {
            self.namespace = sibling;
            return;
        }
        // "No, 482": the number of a namespace.
        let numbered = self.words.iter().filter(|word| word.len() > 2 && word.parse::<u32>().is_ok());
        let numbered: Vec<String> = numbered.filter_map(|word| lexicon.namespace_like(word)).collect();
        if let [only] = &numbered[..]
            && self.verb.is_none_or(|verb| verb != Verb::Scale)
            && self.names.is_empty()
        {
            self.namespace = Some(only.clone());
            self.replicas = None;
            return;
        }
        let is_known = |name: &str| {
            namespaces.contains(&known_as(name, lexicon))
                && (namespaces.iter().any(|known| known == name) || lexicon.linked(name).is_none())
        };
        let Some(at) = self.names.iter().position(|name| is_known(name)) else { return };
        let name = self.names[at].clone();
        let position = self.words.iter().position(|word| *word == name).unwrap_or_default();
        let next = self.word(position + 1).to_owned();
        let of_object = kind_word(&next).is_some() && !crate::kinds::is_plural(&next) && self.names.len() == 1;
        let is_change = self.verb.is_some_and(|verb| !verb.is_read());
        let has_more = self.replicas.is_some() && self.names.len() > 1
            || self.kind.is_some()
            || self.names.len() > 1
            || self.pronoun
            || self.pick.is_some()
            || next == "one";
        // "Give eu a second one": no object has the name, so it is that of the namespace, and the object was spoken of.
        let is_place = lexicon.is_complete()
            && lexicon.linked(&name).is_none()
            && self.verb.is_some_and(|verb| {
                matches!(verb, Verb::Scale | Verb::SetImage | Verb::RolloutRestart | Verb::RolloutUndo)
            });
        if of_object || is_change && !has_more && !is_place {
            return;
        }
        self.names.remove(at);
        self.namespace = Some(known_as(&name, lexicon));
        self.pronoun |= (next == "one" || is_place) && self.names.is_empty();
    }

    /// Reads numbers with their units: replicas, lines, times, images, quantities.
    pub(super) fn read_amounts(&mut self, originals: &[String], used: &mut [bool]) {
        let mut has_judged_version = false;
        for at in 0..self.words.len() {
            if used[at] {
                continue;
            }
            let (word, next) = (self.word(at).to_owned(), self.word(at + 1).to_owned());
            let before = if at > 0 { self.word(at - 1).to_owned() } else { String::new() };
            let names_version = matches!(&*before, "version" | "build" | "tag" | "release" | "image");
            if names_version && word.parse::<u32>().is_ok() && self.replicas.is_none() {
                self.version = Some(originals[at].clone());
                used[at] = true;
                continue;
            }
            if matches!(&*word, "latest" | "stable" | "nightly" | "canary")
                && matches!(&*before, "to" | "use" | "on" | "at")
                && next != "one"
            {
                self.version = Some(originals[at].clone());
                used[at] = true;
                continue;
            }
            if let Some(number) = number_of(&word) {
                self.read_number(number, at, &before, &next, used);
                continue;
            }
            // "The last 10m"; elsewhere, 10m is a hundredth of a processor.
            if let Some(seconds) = duration(&word).filter(|_| matches!(&*before, "last" | "past" | "since")) {
                self.since_seconds = Some(seconds);
                used[at] = true;
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
                let is_env =
                    name.len() > 1 && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
                if !is_env && value.contains(':') || value.contains('/') && self.has("image") {
                    self.container = Some(name.to_owned());
                    self.image = Some(value.to_owned());
                } else {
                    self.values.insert(name.to_owned(), Some(value.to_owned()));
                }
            } else if is_image(original) {
                used[at] = true;
                self.image = Some(original.clone());
            } else if is_version(original) {
                used[at] = true;
                // "1.3 is broken, use 1.4".
                let is_judged = matches!(
                    &*next,
                    "is" | "was"
                        | "has"
                        | "had"
                        | "isnt"
                        | "wasnt"
                        | "leaks"
                        | "breaks"
                        | "broke"
                        | "crashes"
                        | "fails"
                        | "doesnt"
                );
                let is_old = is_judged || matches!(&*before, "from" | "pushed" | "not" | "never" | "than" | "of");
                if has_judged_version && !is_old {
                    self.version = None;
                }
                has_judged_version |= is_judged;
                if self.version.is_none() || !is_old {
                    self.version =
                        self.version.take().filter(|_| is_old || before != "to").or_else(|| Some(original.clone()));
                }
            } else if is_variable(original) && matches!(&*next, "to" | "as" | "=" | "is") && at + 2 < self.words.len() {
                // "Set LOG_LEVEL to debug".
                used[at..at + 3].fill(true);
                self.values.insert(original.clone(), Some(originals[at + 2].clone()));
            }
        }
    }

    /// "Scale it down by 2", "two fewer".
    fn changes_number(&self) -> bool {
        self.has_any(&[
            "scale", "increase", "decrease", "up", "down", "raise", "lower", "reduce", "grow", "shrink", "bump",
            "more", "fewer", "extend", "expand", "add", "drop", "cut", "replicas", "scaling",
        ])
    }

    /// "No 5", "no, 5 please": "no" corrects, and "details of no. 2" counts.
    fn is_correction_before(&self, at: usize) -> bool {
        self.word(at - 1) == "no"
            && (at < 2 || !matches!(self.word(at - 2), "of" | "for" | "describe" | "restart" | "delete" | "to"))
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
            "more" if self.word(at + 2).starts_with("time") => return,
            "more" => self.replicas = Some(Replicas::By(i64::from(number))),
            "fewer" | "les" => self.replicas = Some(Replicas::By(-i64::from(number))),
            _ if matches!(before, "revision" | "rev" | "#") => self.revision = Some(number),
            _ if matches!(before, "number" | "option" | "no" | "nr" | "num")
                && number > 0
                && !self.is_correction_before(at) =>
            {
                self.pick = Some(Pick::At(number as usize - 1))
            }
            // "I need this by 5" names a time.
            _ if before == "by" && self.changes_number() => {
                let sign = if self.has_any(&["down", "decrease", "reduce", "fewer", "drop", "lower", "cut", "shrink"]) {
                    -1
                } else {
                    1
                };
                self.replicas = Some(Replicas::By(sign * i64::from(number)));
            }
            _ if matches!(before, "to" | "at" | "with" | "have") && next != "one"
                || before == "it" && self.has_any(&["make", "set", "keep", "put"]) =>
            {
                self.replicas = Some(Replicas::To(number))
            }
            _ if matches!(before, "last" | "tail" | "newest" | "latest") && number > 1 => self.tail = Some(number),
            _ if matches!(before, "in" | "by" | "until" | "till") => return,
            _ if self.words.len() <= 3 && !matches!(self.word(at), "one") => self.replicas = Some(Replicas::To(number)),
            _ => return,
        }
        used[at] = true;
    }
}

/// Whether a word is a version: numbers with dots between them, such as `1.9.0` or `v2.1-rc1`.
fn is_version(word: &str) -> bool {
    let rest = word.strip_prefix('v').unwrap_or(word);
    let (numbers, suffix) = rest.split_once('-').map_or((rest, ""), |(numbers, suffix)| (numbers, suffix));
    let parts: Vec<&str> = numbers.split('.').collect();
    (2..=4).contains(&parts.len())
        && parts.iter().all(|part| (1..=6).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit()))
        && suffix.chars().all(|c| c.is_ascii_alphanumeric() || c == '.')
}

/// Whether a word is written like the name of an environment variable: `LOG_LEVEL`.
fn is_variable(word: &str) -> bool {
    word.len() > 2
        && word.starts_with(|c: char| c.is_ascii_uppercase())
        && word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
        && word.contains('_')
}

fn is_image(word: &str) -> bool {
    let Some((name, tag)) = word.rsplit_once(':') else { return false };
    let is_word =
        |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "._/-@".contains(c));
    is_word(name) && is_word(tag) && !word.starts_with("http") && name.chars().any(|c| c.is_ascii_alphabetic())
}

/// Returns the namespace that a name means: "production" is `prod` if there is no namespace `production`.
fn known_as(name: &str, lexicon: &Lexicon) -> String {
    let namespaces = &lexicon.namespaces;
    const ALIASES: [(&str, &str); 6] = [
        ("production", "prod"),
        ("prod", "production"),
        ("stage", "staging"),
        ("stg", "staging"),
        ("development", "dev"),
        ("dev", "development"),
    ];
    let has = |name: &str| namespaces.iter().any(|known| known == name);
    if has(name) {
        return name.to_owned();
    }
    let alias = ALIASES.iter().find(|(alias, meant)| *alias == name && !has(name) && has(meant));
    match alias {
        Some((_, meant)) => (*meant).to_owned(),
        None => lexicon.namespace_like(name).unwrap_or_else(|| name.to_owned()),
    }
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

pub(in crate::offline) fn number_of(word: &str) -> Option<u32> {
    const NUMBERS: [&str; 13] =
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
    // "+1" agrees, and is no number.
    let digits = word.parse().ok().filter(|_| !word.starts_with('+'));
    digits.or_else(|| NUMBERS.iter().position(|number| *number == word).and_then(|at| u32::try_from(at).ok()))
}
