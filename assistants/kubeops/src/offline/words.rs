//! Parses a message: what is asked for, on which object, with which arguments.

mod acts;
mod amounts;
mod arguments;
mod clauses;
mod code;
mod descriptions;
mod implied;
mod lexicon;
mod references;
mod social;
mod spelling;
mod states;
mod text;
mod verbs;
mod vocabulary;

use std::collections::BTreeMap;

use crate::command::Verb;
pub(super) use arguments::number_of;
pub(super) use clauses::{changes_ruled_out, without_remark, without_ruled_out};
pub(super) use code::chained_program;
pub(super) use descriptions::{Age, Description, descriptions, is_small_talk};
pub(super) use lexicon::Lexicon;
pub(crate) use lexicon::{fit_of_words, may_name_unusual_kind, words_of};
pub(super) use states::State;
pub(super) use text::clean;
use text::{
    spelled, take_manifest, take_program, with_letters_joined, without_possessive, without_quotes, words_of_verb,
};
pub(super) use vocabulary::is_ordinary;

/// The maximum number of characters that are read.
const MAX_CHARACTERS: usize = 4_000;
/// The maximum number of words that are read.
const MAX_WORDS: usize = 300;

/// A parsed message.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Reading {
    pub(super) act: Option<Act>,
    pub(super) verb: Option<Verb>,
    /// Whether the verb is only implied by other words, such as "anything crashing".
    pub(super) is_implied: bool,
    pub(super) kind: Option<String>,
    /// Whether the kind was named in the plural: "pods".
    pub(super) is_plural: bool,
    /// Words that may be the name of an object or part of it.
    pub(super) names: Vec<String>,
    pub(super) namespace: Option<String>,
    pub(super) all_namespaces: bool,
    pub(super) replicas: Option<Replicas>,
    pub(super) image: Option<String>,
    /// A version without an image: "1.9.0".
    pub(super) version: Option<String>,
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
    /// The program of `exec` and its arguments.
    pub(super) program: Vec<String>,
    /// Whether the manifest of an object is asked for.
    pub(super) as_yaml: bool,
    pub(super) unhealthy: bool,
    /// Whether the number of objects is asked for.
    pub(super) counts: bool,
    pub(super) pronoun: bool,
    pub(super) pick: Option<Pick>,
    /// Further positions: "the second and the third".
    pub(super) picks: Vec<Pick>,
    /// The state of the objects that are meant: "the completed ones".
    pub(super) state: Option<State>,
    /// Whether several objects are meant: "both", "all of them".
    pub(super) each: bool,
    /// Whether the state of an object is asked for in few words: "replicas now?"
    pub(super) asks_state: bool,
    /// Whether the message ends with a question mark.
    pub(super) is_question: bool,
    /// Whether a sentence of the message is a question.
    pub(super) has_question: bool,
    /// Whether a name was given in the plural, so its pods are meant: "the fetchers".
    pub(super) names_several: bool,
    /// A place that the cluster does not have, if the message is otherwise open: "repeat that in qa".
    pub(super) unknown_place: Option<String>,
    /// The number of words that are not recognized.
    pub(super) unknown: usize,
    /// The words, in lower case.
    pub(super) words: Vec<String>,
}

/// A message that is not a command by itself.
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
    /// "what did you change?", "what waits for approval?"
    History,
    /// A change that is only spoken of: "don't restart it yet", "what if I delete it?", "who scaled it?"
    Spoken,
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
    /// This many more than the number that was requested last: "the same number plus one".
    Same(i64),
    /// The number before the last change of the object: "scale it back".
    Before,
}

impl Replicas {
    /// Returns the number if it is that of a request: half of "6" is 3. `None` if it depends on more than that.
    pub(super) fn of(self, number: u32) -> Option<u32> {
        match self {
            Self::To(number) => Some(number),
            Self::By(step) | Self::Same(step) => u32::try_from((i64::from(number) + step).max(0)).ok(),
            Self::Times(times) => number.checked_mul(times),
            Self::Half => Some(number / 2),
            Self::Before => None,
        }
    }
}

/// One of several objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pick {
    /// The one at this 0-based position.
    At(usize),
    Last,
    /// This many from the start of the list.
    First(usize),
    /// This many from the end of the list.
    Newest(usize),
    Other,
    /// The one in the middle of the list.
    Middle,
    /// The one that follows, in its list, what was spoken of last.
    Next,
    /// The one that precedes, in its list, what was spoken of last.
    Previous,
    /// The only one of the list that was not spoken of since.
    Untouched,
    /// The one that was spoken of before the last one.
    Before,
    /// The one that was spoken of first: "the pod I asked about first".
    AskedFirst,
    /// The one that earlier answers did not show: "the new one".
    Fresh,
    /// The one to which a command was applied: "the one you described".
    Done(Verb),
}

/// Reads a message.
pub(super) fn read(message: &str, lexicon: &Lexicon) -> Reading {
    let namespaces = &lexicon.namespaces;
    let text: String = message.chars().take(MAX_CHARACTERS).collect();
    let (text, manifest) = take_manifest(&text);
    let text = without_quotes(&text);
    let (text, program) = code::take_program_of_words(&text);
    let text = code::without_commands_spoken_of(&text);
    let (text, program) = if program.is_empty() { take_program(&text) } else { (text, program) };
    let originals: Vec<String> = text
        .split_whitespace()
        .take(MAX_WORDS)
        .filter(|word| !word.starts_with('@'))
        .map(clean)
        .filter(|word| !word.is_empty())
        .map(|word| without_possessive(&word).map(str::to_owned).unwrap_or(word))
        .map(|word| spelled(word, lexicon))
        .flat_map(|word| words_of_verb(&word).unwrap_or_else(|| vec![word]))
        .collect();
    let originals = with_letters_joined(originals);
    let mut reading = Reading {
        manifest,
        program,
        is_question: text.trim_end().ends_with('?'),
        has_question: text.contains('?'),
        words: originals
            .iter()
            .map(|word| word.to_lowercase().replace(['\'', '’'], ""))
            .map(|word| if word == "whys" { "why".to_owned() } else { word })
            .collect(),
        ..Reading::default()
    };
    reading.read_short_nodes();
    let mut used = vec![false; originals.len()];
    let words = reading.words.clone();
    let joined = words.join(" ");
    reading.read_flags(&originals, &mut used);
    reading.read_exact_namespace(namespaces, &mut used);
    reading.read_namespace(lexicon, &mut used);
    reading.read_joined_names(lexicon, &mut used);
    reading.read_amounts(&originals, &mut used);
    reading.read_kind(lexicon, &mut used);
    reading.read_verb(&joined, &mut used);
    if !reading.program.is_empty() {
        reading.verb = Some(Verb::Exec);
    }
    // "How often did that restart" asks for no change.
    if reading.verb.is_some_and(|verb| !verb.is_read()) && (reading.says("how often") || reading.says("how many times"))
    {
        reading.verb = Some(Verb::Get);
    }
    // "What's up with the pending one? Describe pls".
    if reading.verb == Some(Verb::Get) && reading.has("describe") {
        reading.verb = Some(Verb::Describe);
    }
    if reading.has("yaml")
        && reading.manifest.is_none()
        && matches!(reading.verb, None | Some(Verb::Get | Verb::Describe))
    {
        reading.as_yaml = true;
        reading.verb = Some(Verb::Get);
    }
    if matches!(reading.verb, Some(Verb::Cordon | Verb::Uncordon | Verb::Drain))
        && reading.kind.as_deref() != Some("nodes")
    {
        // "Drain it, ignore daemonsets".
        reading.kind = None;
        reading.is_plural = false;
    }
    reading.read_references(&joined, lexicon, &mut used);
    // "Let pods land there again".
    reading.pronoun |= matches!(reading.verb, Some(Verb::Cordon | Verb::Uncordon | Verb::Drain))
        && reading.has_any(&["there", "that", "this"]);
    reading.read_state();
    reading.leave_number_to_state();
    reading.read_names(&originals, &used, lexicon);
    reading.read_known_namespace(lexicon);
    reading.complete_versions();
    reading.complete_programs();
    reading.complete_short_kind();
    reading.pronoun |= reading.asks_state && reading.names.is_empty() && reading.kind.is_none();
    reading.act = reading.find_act(&joined);
    reading
}

/// Whether words begin with those of a change.
pub(super) fn is_change_phrase(words: &[String]) -> bool {
    let begins = |phrase: &str| {
        phrase.split(' ').zip(words).all(|(part, word)| part == word) && phrase.split(' ').count() <= words.len()
    };
    vocabulary::VERBS.iter().any(|(phrase, verb)| !verb.is_read() && begins(phrase))
}

impl Reading {
    /// "k get no": elsewhere, "no" is a word of its own.
    fn read_short_nodes(&mut self) {
        let is_end = |word: &str| word.is_empty() || word.starts_with('-');
        let at = (1..self.words.len()).find(|at| {
            self.word(*at) == "no" && matches!(self.word(at - 1), "get" | "top") && is_end(self.word(at + 1))
        });
        if let Some(at) = at {
            "nodes".clone_into(&mut self.words[at]);
        }
    }

    fn word(&self, at: usize) -> &str {
        self.words.get(at).map_or("", String::as_str)
    }

    pub(super) fn has(&self, word: &str) -> bool {
        self.words.iter().any(|own| own == word)
    }

    pub(super) fn has_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.has(word))
    }

    /// "Which programs are running on our server?" asks for the deployments.
    fn complete_programs(&mut self) {
        let is_open = self.kind.is_none() && self.names.is_empty() && !self.pronoun;
        let is_read = matches!(self.verb, None | Some(Verb::Get));
        let asks = is_read && self.has_any(&["what", "which", "list", "show", "all", "tell"]);
        let runs = self.has_any(&["running", "runs", "run", "have", "there", "deployed", "installed"]);
        let are_programs = self.has_any(&["programs", "apps", "applications", "workloads", "programmes", "software"]);
        // "Whats deployed in staging".
        let is_deployed = self.namespace.is_some()
            && self.words.windows(2).any(|pair| {
                matches!(&*pair[0], "whats" | "what" | "is" | "stuff" | "everything") && pair[1] == "deployed"
            });
        let asks = asks || is_read && is_deployed && self.has("whats");
        let are_programs = are_programs || is_deployed;
        if is_open && asks && runs && are_programs {
            self.kind = Some("deployments".to_owned());
            self.is_plural = true;
            self.verb = Some(Verb::Get);
            self.unknown = 0;
        }
    }

    /// "What versions are on prod?" asks for the deployments.
    fn complete_versions(&mut self) {
        let is_open = self.kind.is_none() && self.names.is_empty() && self.namespace.is_some() && !self.pronoun;
        let is_read = matches!(self.verb, None | Some(Verb::Get));
        if is_open && is_read && self.has_any(&["version", "versions", "image", "images"]) {
            self.kind = Some("deployments".to_owned());
            self.is_plural = true;
            self.verb = Some(Verb::Get);
        }
    }

    /// "po in dev", "get svc": a short name of a kind without an object's name asks for a list.
    fn complete_short_kind(&mut self) {
        const SHORT: [&str; 13] =
            ["po", "svc", "deploy", "sts", "ds", "rs", "cm", "pvc", "pv", "ing", "ns", "cj", "hpa"];
        let asks = matches!(self.verb, None | Some(Verb::Get)) && self.names.is_empty() && self.kind.is_some();
        if asks && self.has_any(&SHORT) && !self.pronoun && self.words.len() <= 6 {
            self.is_plural = true;
            self.verb = Some(Verb::Get);
        }
    }

    /// Whether the message asks something, also without a question mark.
    pub(super) fn asks(&self) -> bool {
        const FIRST: [&str; 19] = [
            "does", "is", "are", "did", "which", "how", "hows", "why", "when", "who", "where", "has", "was", "were",
            "whos", "wheres", "would", "what", "whats",
        ];
        let is_proposal = self.says("what about") || self.says("how about");
        let is_filler = |word: &str| {
            matches!(
                word,
                "ok" | "okay"
                    | "so"
                    | "and"
                    | "but"
                    | "hm"
                    | "hmm"
                    | "good"
                    | "great"
                    | "thanks"
                    | "cool"
                    | "well"
                    | "ah"
                    | "oh"
                    | "phew"
                    | "hey"
                    | "hi"
                    | "now"
                    | "wait"
                    | "alright"
                    | "right"
                    | "then"
                    | "also"
                    | "yes"
                    | "no"
                    | "nice"
                    | "perfect"
            )
        };
        let first = self.words.iter().find(|word| !is_filler(word));
        self.is_question || !is_proposal && first.is_some_and(|word| FIRST.contains(&&**word))
    }

    /// Whether the user asks to make a change later: "tonight at 8", "on monday by yourself".
    pub(super) fn has_schedule(&self) -> bool {
        const DAYS: [&str; 9] =
            ["tonight", "tomorrow", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
        let names_day = self.words.iter().enumerate().any(|(at, word)| {
            let before = if at > 0 { self.word(at - 1) } else { "" };
            // "Black friday rehearsal" is not a time.
            let is_time =
                matches!(&**word, "tonight" | "tomorrow") || matches!(before, "on" | "next" | "this" | "every" | "by");
            DAYS.contains(&&**word) && is_time && !matches!(before, "till" | "until" | "since" | "last")
        });
        names_day || self.says("by yourself") || self.has("automatically")
    }

    /// Whether the user asks to make a change only under a condition: "if it has more than 20 restarts, delete it".
    pub(super) fn has_condition(&self) -> bool {
        let is_politeness = [
            "if it is not too much",
            "if its not too much",
            "if it isnt too much",
            "if its no trouble",
            "if it is no trouble",
            "if you would",
            "if i may",
            "if you can",
            "if you could",
            "if possible",
            "if you dont mind",
            "if thats ok",
            "if you please",
        ]
        .iter()
        .any(|phrase| self.says(phrase));
        self.has("unless") || self.has("otherwise") || self.has("if") && !is_politeness
    }

    /// Returns the message without what a correction excludes: "3 instead of 4", "api, not v2".
    pub(super) fn without_what_is_excluded(&self) -> Self {
        let mut reading = self.clone();
        let mut at = 0;
        while at < reading.words.len() {
            let length = match (reading.word(at), reading.word(at + 1)) {
                ("instead", "of") => 3,
                ("not", "the" | "that" | "in" | "on" | "for" | "from") => 3,
                ("not", _) => 2,
                _ => {
                    at += 1;
                    continue;
                }
            };
            let end = (at + length).min(reading.words.len());
            let excluded: Vec<String> = reading.words.drain(at..end).collect();
            // "Not auth, auth-proxy. Auth is fine": it stays excluded.
            let follows = |name: &String| self.words.windows(2).any(|pair| pair[0] == "not" && pair[1] == *name);
            reading.names.retain(|name| !excluded.contains(name) || reading.words.contains(name) && !follows(name));
            // "Instead of preprod, prod": the other name is that of the namespace.
            reading.namespace.take_if(|name| excluded.contains(name) && !reading.words.contains(name));
        }
        if reading.words.len() < self.words.len() {
            reading.take_kind_of_rest();
            reading.replicas = reading.only_number().map(Replicas::To).or(reading.replicas);
        }
        reading
    }

    /// Whether words of the message say that something was a mistake.
    pub(super) fn corrects_in_words(&self) -> bool {
        self.has_any(&["no", "not", "sorry", "wrong", "meant", "instead", "rather", "actually", "oops"])
    }

    /// Whether the message contains the words of a phrase in a row.
    pub(super) fn says(&self, phrase: &str) -> bool {
        let joined = format!(" {} ", self.words.join(" "));
        joined.contains(&format!(" {phrase} "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_with_their_arguments() {
        let reading = read("scale nginx to 3 in the shop namespace", &Lexicon::default());
        assert_eq!((reading.verb, reading.replicas), (Some(Verb::Scale), Some(Replicas::To(3))));
        assert_eq!((&*reading.names, reading.namespace.as_deref()), (&["nginx".to_owned()][..], Some("shop")));
        let reading = read("logs of the payments deployment, last 20 lines", &Lexicon::default());
        assert_eq!(
            (reading.verb, reading.kind.as_deref(), reading.tail),
            (Some(Verb::Logs), Some("deployments"), Some(20))
        );
        assert_eq!(reading.names, ["payments"]);
        let reading = read("kubectl get po -n prod -l app=web", &Lexicon::default());
        assert_eq!((reading.verb, reading.kind.as_deref()), (Some(Verb::Get), Some("pods")));
        assert_eq!((reading.namespace.as_deref(), reading.selector.as_deref()), (Some("prod"), Some("app=web")));
        assert!(reading.names.is_empty(), "{reading:?}");
        let reading = read("set image deployment/api api=shop-api:2.4.0", &Lexicon::default());
        assert_eq!(
            (reading.verb, reading.kind.as_deref(), reading.container.as_deref()),
            (Some(Verb::SetImage), Some("deployments"), Some("api"))
        );
        assert_eq!((reading.image.as_deref(), &*reading.names), (Some("shop-api:2.4.0"), &["api".to_owned()][..]));
        let reading = read("give the web deployment 512Mi of memory", &Lexicon::default());
        assert_eq!(reading.verb, Some(Verb::SetResources));
        assert_eq!(reading.limits["memory"], "512Mi");
    }

    #[test]
    fn a_namespace_that_is_ruled_out_is_told_from_one_that_is_meant() {
        let namespaces = ["blue".to_owned(), "green".to_owned()];
        let ruled_out = |message: &str| read(message, &Lexicon::default()).places_ruled_out(&namespaces);
        assert_eq!(ruled_out("restart tracker, but not in blue"), ["blue"]);
        assert_eq!(ruled_out("restart tracker anywhere but blue"), ["blue"]);
        assert_eq!(ruled_out("restart tracker in green"), Vec::<String>::new());
        assert_eq!(read("+1 from me", &Lexicon::default()).replicas, None);
        assert!(read("6 is too many", &Lexicon::default()).is_too_much());
        let reading = read("give tracker twice the memory", &Lexicon::default());
        assert_eq!((reading.verb, reading.replicas), (Some(Verb::SetResources), None));
    }

    #[test]
    fn states_are_also_predicates() {
        let state = |message: &str| read(message, &Lexicon::default()).state;
        assert_eq!(state("which one isnt ready??"), Some(State::NotReady));
        assert_eq!(state("which of them is still pending?"), Some(State::Pending));
        assert_eq!(state("and which of all those was crashing?"), Some(State::Crashing));
        assert_eq!(state("which one is in blue?"), None);
        assert_eq!(state("describe the one that isn't fully ready"), Some(State::NotReady));
        assert_eq!(state("the one which is not running"), Some(State::Unhealthy));
        assert_eq!(state("describe the one that crashes"), Some(State::Crashing));
        assert_eq!(state("the one that isn't crashing"), Some(State::Healthy));
        assert_eq!(state("describe the one with three replicas"), Some(State::Replicas(3)));
        assert_eq!(state("the one with 12"), Some(State::Count(12)));
        assert_eq!(state("the one with fewer restarts"), Some(State::LeastRestarted));
        assert_eq!(state("delete the one with more than 5 restarts"), Some(State::MoreRestarts(5)));
        assert_eq!(state("delete the one with fewer than 5 restarts"), None);
        assert_eq!(state("the one with more restarts than the other"), Some(State::MostRestarted));
        assert_eq!(state("describe the one with the most"), Some(State::Most));
        assert_eq!(state("the one with no restarts"), Some(State::Restarted(0)));
    }

    #[test]
    fn a_program_follows_two_dashes() {
        let reading = read("kubectl exec web-1 -n prod -c web -- df -h /data", &Lexicon::default());
        assert_eq!((reading.verb, reading.act), (Some(Verb::Exec), None));
        assert_eq!((&*reading.names, reading.namespace.as_deref()), (&["web-1".to_owned()][..], Some("prod")));
        assert_eq!((&*reading.program.join(" "), reading.container.as_deref()), ("df -h /data", Some("web")));
        let reading = read("can you exec web-1 -- ls /tmp?", &Lexicon::default());
        assert_eq!((&*reading.names, &*reading.program.join(" ")), (&["web-1".to_owned()][..], "ls /tmp"));
        let reading = read("kubectl get cm app-config -n prod -o yaml", &Lexicon::default());
        assert_eq!((reading.verb, reading.as_yaml), (Some(Verb::Get), true));
    }

    #[test]
    fn sentences_without_a_request_name_no_object() {
        for message in
            ["note number 3: nothing to do, just acknowledge", "thanks, that was great", "what can you do?", "hi"]
        {
            let reading = read(message, &Lexicon::default());
            assert!(reading.names.is_empty() && reading.kind.is_none(), "{message}: {reading:?}");
        }
    }

    #[test]
    fn commands_that_need_a_terminal_are_refused_by_name() {
        for message in [
            "kubectl exec -it web-1 -- sh",
            "exec into web-1",
            "port-forward web 8080:80",
            "edit deployment web",
            "can you ssh into web-1",
        ] {
            assert!(
                matches!(read(message, &Lexicon::default()).act, Some(Act::Refused(_))),
                "{message}: {:?}",
                read(message, &Lexicon::default())
            );
        }
    }
}
