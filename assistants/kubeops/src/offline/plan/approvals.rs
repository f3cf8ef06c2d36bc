//! Questions whether a change needs an approval, and whose.

use threadkeep::agent::ApprovalState;

use crate::command::Verb;
use crate::conversation::{Conversation, Requested};
use crate::offline::answers;
use crate::offline::words::Reading;

use super::{Next, reply};

const RULE: &str = "Looking at the cluster needs no approval. I never change anything by myself: every change waits until a person reacts \
    to its request with ✅ (❌ denies it). Anyone in this conversation can approve, unless my configuration names the approvers.";

/// "Does somebody have to approve that?", "can I approve it myself?": how approvals work, and what waits for one. `None` for other
/// messages.
pub(super) fn about_approvals(reading: &Reading, conversation: &Conversation) -> Option<Next> {
    let names_approval =
        reading.has_any(&[
            "approve",
            "approves",
            "approval",
            "approvals",
            "approver",
            "approvers",
            "permission",
            "signoff",
            "sign-off",
        ]) || ["sign off", "be approved", "get approved", "sign it off", "sign that off", "green light"]
            .iter()
            .any(|phrase| reading.says(phrase));
    let asks_rule = ["have to", "has to", "is allowed", "are allowed", "who can", "who may", "who must", "can anyone"]
        .iter()
        .any(|phrase| reading.says(phrase))
        || reading.has_any(&["need", "needs", "needed", "must", "required", "necessary", "without", "supposed"])
        || ["can i", "may i", "can we", "can anybody", "can someone", "can somebody", "who approves", "who should"]
            .iter()
            .any(|phrase| reading.says(phrase));
    // "What needs approval?", "is it still waiting?" ask what waits.
    let first = reading.words.iter().find(|word| !matches!(&***word, "and" | "so" | "ok" | "but" | "hm" | "wait"));
    let asks_what = first.is_some_and(|word| matches!(&**word, "what" | "whats" | "which" | "anything" | "any"))
        || reading.has_any(&["waiting", "waits", "pending", "yet", "already", "still"]);
    if asks_what_waits(reading) {
        let all: Vec<&Requested> = conversation.earlier.iter().flat_map(|exchange| &exchange.requested).collect();
        let waiting: Vec<String> = all
            .iter()
            .filter(|requested| requested.state == ApprovalState::Pending)
            .map(|requested| answers::line_of_history(requested))
            .collect();
        return Some(reply(match (all.is_empty(), waiting.len()) {
            (true, _) => answers::NOTHING_BEFORE.to_owned(),
            (false, 0) => "No request waits for an approval.".to_owned(),
            (false, 1) => format!("1 request waits for its approval:\n{}", waiting[0]),
            (false, count) => format!("{count} requests wait for their approval:\n{}", waiting.join("\n")),
        }));
    }
    if let Some(requested) = request_asked_about(reading, conversation) {
        return Some(reply(answers::fate(requested).unwrap_or_else(|| answers::line_of_history(requested))));
    }
    if asks_if_approved(reading) {
        return Some(reply(match answers::last_change(conversation) {
            Some((_, Some(requested), _)) => answers::line_of_history(requested),
            _ => answers::NOTHING_BEFORE.to_owned(),
        }));
    }
    if !names_approval || !asks_rule || asks_what || !reading.asks() {
        return None;
    }
    Some(reply(match answers::pending(conversation) {
        Some(requested) => format!("Yes. {} {RULE}", answers::waiting(requested)),
        None => RULE.to_owned(),
    }))
}

/// "Which requests are open?", "what hasn't been approved so far?", "what are we waiting for?"
fn asks_what_waits(reading: &Reading) -> bool {
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| reading.says(phrase));
    let open = reading.has_any(&["open", "pending", "waiting", "unapproved", "outstanding", "undecided"]);
    let of_requests = reading.has_any(&["requests", "approvals"]) && open;
    let is_unapproved = reading.has("unapproved")
        || says(&[
            "hasnt been approved",
            "havent been approved",
            "not been approved",
            "isnt approved",
            "arent approved",
        ]);
    let waits =
        says(&["we waiting for", "you waiting for", "still waiting for"]) && reading.has_any(&["what", "whats"]);
    let any_of = says(&["any of it approved", "any of them approved", "any of those approved", "anything approved"]);
    let asks = reading.asks()
        || reading.is_question
        || reading.has_any(&["what", "whats", "which", "list", "show", "any", "anything", "how"]);
    let is_plain = reading.verb.is_none_or(Verb::is_read) && reading.names.is_empty() && reading.namespace.is_none();
    asks && is_plain && (of_requests || is_unapproved || waits || any_of)
}

/// "Has anyone approved that yet?", "did bob ok it?"
fn asks_if_approved(reading: &Reading) -> bool {
    let first = reading.words.iter().find(|word| !matches!(&***word, "and" | "so" | "ok" | "but" | "hm" | "wait"));
    let asks = first.is_some_and(|word| matches!(&**word, "did" | "has" | "have" | "is" | "was"));
    let is_person = reading.has_any(&["anyone", "anybody", "someone", "somebody", "nobody"]);
    let names =
        reading.has_any(&["approve", "approved", "sign", "signed", "confirm", "confirmed", "accept", "accepted"]);
    asks && is_person && names && reading.names.is_empty()
}

/// "The first request, did that run too?", "what's the state of that last request?": the request that is meant.
fn request_asked_about<'a>(reading: &Reading, conversation: &'a Conversation) -> Option<&'a Requested> {
    let words = &reading.words;
    let at = words.iter().position(|word| matches!(&**word, "request" | "approval"))?;
    let asks = reading.asks()
        || reading.is_question
        || reading.has_any(&["did", "state", "status", "became", "whats", "what"]) && !reading.has("cancel");
    let about = reading.has_any(&[
        "run", "ran", "state", "status", "became", "happened", "executed", "approved", "denied", "done", "carried",
        "go", "went", "waiting", "open", "pending", "work", "applied",
    ]);
    let all: Vec<&Requested> = conversation.earlier.iter().flat_map(|exchange| &exchange.requested).collect();
    let before = at.checked_sub(1).map(|before| &*words[before]).unwrap_or_default();
    let meant = match before {
        "last" | "that" | "newest" | "latest" | "this" | "my" | "the" | "second" => all.last().copied(),
        "first" | "earlier" | "previous" | "original" | "old" if all.len() < 3 => all.first().copied(),
        value => {
            let mut fitting = all.iter().filter(|requested| requested.command.line().contains(value));
            fitting.next().copied().filter(|_| fitting.next().is_none() && value.len() > 2)
        }
    };
    meant.filter(|_| asks && about)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offline::words::{Lexicon, read};

    #[test]
    fn questions_about_the_rule_are_told_from_those_about_requests() {
        let about = |message: &str| about_approvals(&read(message, &Lexicon::default()), &Conversation::default());
        for message in ["who has to sign off on this?", "do you need permission for that?", "can i approve it myself?"]
        {
            assert!(about(message).is_some(), "{message}");
        }
        // The names of the cluster are known.
        let known = Conversation { mentioned: Some(Vec::new()), ..Conversation::default() };
        let about_known = |message: &str| about_approvals(&read(message, &Lexicon::of(&known)), &known);
        for message in ["which requests are open", "what hasnt been approved so far?", "any of it approved?"] {
            assert_eq!(about_known(message), Some(reply(answers::NOTHING_BEFORE)), "{message}");
        }
        for message in ["what needs approval?", "who approved it?", "i approve", "is it approved yet?"] {
            assert_eq!(about(message), None, "{message}");
        }
    }
}
