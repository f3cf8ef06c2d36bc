//! Changes with a condition on a number that can be read: "delete it if it has more than 20 restarts".

mod list;

use std::ops::Range;

use crate::cluster::ObjectSummary;
use crate::command::Verb;
use crate::conversation::Conversation;
use crate::kinds::{SCALABLE, WORKLOADS};
use crate::offline::answers;
use crate::offline::refer;
use crate::offline::words::{Lexicon, Reading, read};

use super::targets::Targets;
use super::{Next, Planner, reply};

const UNDECIDED: &str = "I decide only conditions on a number of restarts or replicas, so I requested nothing. Look at the state first, and then say the change \
     without a condition.";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Metric {
    Restarts,
    Replicas,
    /// 1 if the object is not healthy, otherwise 0.
    Problem,
}

/// A condition on a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Condition {
    metric: Metric,
    /// The least and the greatest value for which it holds.
    range: (u64, u64),
    is_negated: bool,
}

/// Requests a change if its condition holds now.
pub(super) fn conditional(message: &str, conversation: &Conversation, lexicon: &Lexicon) -> Next {
    if let Some(next) = of_state(message, conversation, lexicon) {
        return next;
    }
    if let Some(next) = list::of_list(message, None, conversation, lexicon) {
        return next;
    }
    let Some((condition, rest)) = split(message) else { return reply(UNDECIDED) };
    let mut reading = read(&rest, lexicon);
    let whole = read(message, lexicon);
    // "If cache is down, restart web": the condition is about another object, which is not read.
    if !reading.names.is_empty() && whole.names.iter().any(|name| !reading.names.contains(name)) {
        return reply(UNDECIDED);
    }
    if reading.names.is_empty() {
        reading.names = whole.names;
        reading.pronoun &= reading.names.is_empty();
    }
    reading.namespace = reading.namespace.or(whole.namespace);
    // "If the producer pod restarted more than 5 times, delete it".
    reading.kind = reading.kind.or(whole.kind.filter(|kind| condition.metric == Metric::Restarts && kind == "pods"));
    let verb = reading.verb.filter(|verb| !verb.is_read() && reading.change_verbs().len() < 2);
    let Some(verb) = verb.filter(|_| reading.act.is_none() && !reading.has_condition()) else {
        return reply(UNDECIDED);
    };
    let planner = Planner { conversation, reading };
    let object = match planner.targets(verb) {
        Targets::Objects(objects) if objects.len() == 1 => objects[0].clone(),
        Targets::Then(next) => return next,
        Targets::Objects(_) | Targets::List => return reply(UNDECIDED),
    };
    let value = match planner.value(condition.metric, &object) {
        Ok(value) => value,
        Err(next) => return next,
    };
    let (least, most) = condition.range;
    let what = match condition.metric {
        Metric::Restarts => "restarts",
        Metric::Replicas => "replicas",
        Metric::Problem if value == 0 => {
            return match condition.range {
                (0, 0) => planner.run_or_answer(vec![planner.command(verb, &object)]),
                _ => reply(format!(
                    "{} is healthy and ready, so the condition does not hold: I requested nothing.",
                    object.name
                )),
            };
        }
        Metric::Problem if condition.range == (0, 0) => {
            return reply(format!(
                "{} is not healthy, so the condition does not hold: I requested nothing.",
                object.name
            ));
        }
        Metric::Problem => return planner.run_or_answer(vec![planner.command(verb, &object)]),
    };
    if (least..=most).contains(&value) == condition.is_negated {
        return reply(format!(
            "{} has {value} {what}, so the condition does not hold: I requested nothing.",
            object.name
        ));
    }
    planner.run_or_answer(vec![planner.command(verb, &object)])
}

/// "Only if one of the worker pods is crashing: delete the crashing one": a change of the object that is in the state of the condition,
/// so that without such an object there is nothing to change.
fn of_state(message: &str, conversation: &Conversation, lexicon: &Lexicon) -> Option<Next> {
    let (condition, order) = message.split_once(':').or_else(|| message.split_once(','))?;
    let condition = read(condition, lexicon);
    let mut order = read(order, lexicon);
    let is_same_state = order.state.is_some() && order.unhealthy && condition.unhealthy;
    let is_plain = condition.has("if")
        && !condition.has_any(&["unless", "not", "no", "isnt", "arent"])
        && condition.change_verbs().is_empty()
        && order.change_verbs().len() == 1
        && !order.has_condition()
        && order.act.is_none()
        && order.names.is_empty();
    let verb = order.verb.filter(|verb| !verb.is_read() && is_same_state && is_plain)?;
    let [name] = &condition.names[..] else { return None };
    order.namespace = order.namespace.or(condition.namespace);
    let fits = |object: &&ObjectSummary| {
        object.kind == "pods"
            && order.namespace.as_ref().is_none_or(|namespace| object.namespace == *namespace)
            && crate::cluster::likeness(&object.name, name).is_some_and(|fit| fit < 3)
    };
    let pods: Vec<ObjectSummary> = conversation.mentioned.iter().flatten().filter(fits).cloned().collect();
    let found = order.state.map(|state| state.filter(&pods)).unwrap_or_default();
    let objects: Vec<ObjectSummary> = found.iter().filter_map(|object| refer::fitting(object, verb, None)).collect();
    Some(match &objects[..] {
        [] => reply(format!("No pod of {name} is in that state, so the condition does not hold: I requested nothing.")),
        [only] => {
            let planner = Planner { conversation, reading: order };
            planner.run_or_answer(vec![planner.command(verb, only)])
        }
        several => reply(answers::ask_which(several)),
    })
}

/// "Same rule for fetcher-2": a request with a condition, for another object.
pub(super) fn same_condition(reading: &Reading, conversation: &Conversation, lexicon: &Lexicon) -> Option<Next> {
    let repeats =
        reading.has_any(&["same", "again"]) && reading.has_any(&["rule", "condition", "check", "logic", "deal"]);
    // "Same for cart", directly after such a request.
    let continues = reading.has("same")
        && reading.verb.is_none_or(|verb| verb == Verb::Get)
        && reading.words.len() <= 5
        && conversation.earlier.last().is_some_and(|last| is_conditional(&last.said));
    if !repeats && !continues {
        return None;
    }
    let said =
        conversation.earlier.iter().rev().take(4).map(|exchange| &exchange.said).find(|said| is_conditional(said))?;
    let before = read(said, lexicon);
    // "The same for orders": another object, or another namespace.
    if let Some((old, new)) = before.names.first().zip(reading.names.first()) {
        let words: Vec<String> = said
            .split_whitespace()
            .map(|word| if word.to_lowercase().contains(&**old) { new.clone() } else { word.to_owned() })
            .collect();
        return Some(conditional(&words.join(" "), conversation, lexicon));
    }
    let place = reading.namespace.as_ref().filter(|_| reading.names.is_empty())?;
    if let Some(next) = list::of_list(said, Some(place), conversation, lexicon) {
        return Some(next);
    }
    let old = before.namespace.as_ref()?;
    let is_old = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).eq_ignore_ascii_case(old);
    let words: Vec<&str> = said.split_whitespace().map(|word| if is_old(word) { &**place } else { word }).collect();
    let there = words.join(" ");
    // A name that is also an ordinary word may not be read as that of the namespace.
    (read(&there, lexicon).namespace.as_ref() == Some(place)).then(|| conditional(&there, conversation, lexicon))
}

/// Whether a message requests a change under a condition that can be decided.
fn is_conditional(message: &str) -> bool {
    split(message).is_some() || list::parts(message).is_some()
}

impl Planner<'_> {
    /// Returns the number that a condition tests, or the step that reads it.
    fn value(&self, metric: Metric, object: &ObjectSummary) -> Result<u64, Next> {
        let applies = match metric {
            Metric::Restarts => object.kind == "pods",
            Metric::Replicas => SCALABLE.contains(&&*object.kind),
            Metric::Problem => object.kind == "pods" || WORKLOADS.contains(&&*object.kind),
        };
        if !applies {
            return Err(reply(UNDECIDED));
        }
        let read = self.conversation.steps.iter().find(|step| step.command.verb == Verb::Get);
        let Some(read) = read else { return Err(Next::Run(vec![self.command(Verb::Get, object)])) };
        let objects = read.outcome.as_ref().map_or(&[][..], |outcome| &outcome.objects);
        let current = objects.iter().find(|current| current.name == object.name);
        let value = current.and_then(|current| match metric {
            Metric::Restarts => current.restarts,
            Metric::Replicas => current.replicas,
            Metric::Problem => Some(u64::from(current.is_unhealthy)),
        });
        value.ok_or_else(|| reply(read.error.clone().unwrap_or_else(|| UNDECIDED.to_owned())))
    }
}

/// Splits a message into its condition and the rest.
fn split(message: &str) -> Option<(Condition, String)> {
    let words: Vec<&str> = message.split_whitespace().collect();
    let plain: Vec<String> = words
        .iter()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric() && c != '>' && c != '<').to_lowercase())
        .collect();
    let at = plain.iter().position(|word| matches!(&**word, "if" | "unless"))?;
    if let Some(split) = split_problem(&words, &plain, at) {
        return Some(split);
    }
    let number = (at + 1..plain.len()).find(|number| plain[*number].parse::<u64>().is_ok())?;
    let value: u64 = plain[number].parse().ok()?;
    let before: Vec<&str> = plain[at..number].iter().map(String::as_str).collect();
    let has = |pair: &[&str]| before.windows(pair.len()).any(|words| words == pair);
    // "3 replicas or more"
    let is_unit = |word: &&str| matches!(*word, "replicas" | "restarts" | "pods" | "times" | "copies" | "instances");
    let next: Vec<&str> = plain[number + 1..].iter().map(String::as_str).skip_while(is_unit).take(2).collect();
    let range = if next.starts_with(&["or", "more"]) || has(&["at", "least"]) {
        (value, u64::MAX)
    } else if has(&["more", "than"]) || has(&["over"]) || has(&["above"]) || has(&["greater", "than"]) || has(&[">"]) {
        (value.checked_add(1)?, u64::MAX)
    } else if has(&["less", "than"]) || has(&["fewer", "than"]) || has(&["under"]) || has(&["below"]) || has(&["<"]) {
        (0, value.checked_sub(1)?)
    } else if has(&["at", "most"]) || next.starts_with(&["or", "less"]) || next.starts_with(&["or", "fewer"]) {
        (0, value)
    } else {
        return None;
    };
    let is_metric = |word: &str| {
        matches!(
            word,
            "restarts"
                | "restarted"
                | "replica"
                | "replicas"
                | "pod"
                | "pods"
                | "copies"
                | "instances"
                | "times"
                | "or"
                | "more"
                | "less"
                | "fewer"
                | "now"
                | "running"
                | "already"
        )
    };
    let mut end = number + 1;
    while end < plain.len().min(number + 5) && is_metric(&plain[end]) && !words[end - 1].ends_with([',', '.', ';']) {
        end += 1;
    }
    let metric =
        if plain[at..end].iter().any(|word| word.starts_with("restart")) { Metric::Restarts } else { Metric::Replicas };
    Some((Condition { metric, range, is_negated: plain[at] == "unless" }, without_condition(&words, &plain, at..end)))
}

/// Returns a message without its condition, the words that lead to it, and what happens otherwise.
fn without_condition(words: &[&str], plain: &[String], condition: Range<usize>) -> String {
    let is_lead = |word: &str| matches!(word, "but" | "only" | "and");
    let mut start = condition.start;
    while start > 0 && is_lead(&plain[start - 1]) {
        start -= 1;
    }
    // "Otherwise hands off" says what happens without a request.
    let is_otherwise = |word: &String| matches!(&**word, "otherwise" | "else");
    let end = plain[condition.end..].iter().position(is_otherwise).map_or(plain.len(), |more| condition.end + more);
    let rest: Vec<&str> = words[..start].iter().chain(&words[condition.end..end]).copied().collect();
    rest.join(" ")
}

/// Splits a condition on the health of the object: "restart search, but only if something is not ready".
fn split_problem(words: &[&str], plain: &[String], at: usize) -> Option<(Condition, String)> {
    // The condition ends with its last word of a state.
    const SUBJECTS: [&str; 12] =
        ["it", "its", "something", "anything", "everything", "all", "any", "one", "they", "that", "pods", "pod"];
    let word = |at: usize| plain.get(at).map_or("", String::as_str);
    let mut end = at + 1;
    let mut is_negated = false;
    let mut state = None;
    while end < plain.len().min(at + 10) && state.is_none() {
        match word(end) {
            "not" | "isnt" | "isn't" | "arent" | "aren't" | "doesnt" => is_negated = true,
            "ready" | "healthy" | "running" | "up" | "fine" | "ok" => state = Some(false),
            "down" | "unready" | "unhealthy" | "broken" | "crashing" | "failing" | "sick" | "crashlooping" => {
                state = Some(true)
            }
            "is" | "are" | "still" | "really" | "of" | "the" | "actually" | "currently" | "completely" | "fully" => {}
            subject if SUBJECTS.contains(&subject) => {}
            // "If checkout in prod is down".
            _ if plain[end..].iter().take(7).any(|word| matches!(&**word, "is" | "are" | "isnt" | "isn't")) => {}
            _ => return None,
        }
        end += 1;
    }
    let has_problem = state? != is_negated;
    // "Unless it is healthy" means "if it is not healthy".
    let has_problem = has_problem != (plain[at] == "unless");
    let range = if has_problem { (1, 1) } else { (0, 0) };
    Some((Condition { metric: Metric::Problem, range, is_negated: false }, without_condition(words, plain, at..end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_on_numbers_are_split_off() {
        let (condition, rest) = split("if fetcher-1 has more than 20 restarts delete it, otherwise hands off").unwrap();
        assert_eq!((condition.metric, condition.range.0, &*rest), (Metric::Restarts, 21, "delete it,"));
        let (condition, rest) = split("scale consumer in jobs to 3 but only if there are more than 5 now").unwrap();
        assert_eq!((condition.metric, condition.range.0), (Metric::Replicas, 6));
        assert_eq!(rest, "scale consumer in jobs to 3");
        assert_eq!(split("if it is slow, restart it"), None);
        let (condition, rest) = split("restart search in prod but only if something is not ready").unwrap();
        assert_eq!((condition.metric, condition.range, &*rest), (Metric::Problem, (1, 1), "restart search in prod"));
        let (condition, rest) = split("if it is healthy, restart it").unwrap();
        assert_eq!((condition.metric, condition.range, &*rest), (Metric::Problem, (0, 0), "restart it"));
        let (condition, _) = split("restart web unless everything is up").unwrap();
        assert_eq!((condition.metric, condition.range), (Metric::Problem, (1, 1)));
    }
}
