//! Clauses that rule a change out: "no rollback, set it to api:5.1 instead".

use crate::command::Verb;

use super::vocabulary::VERBS;
use super::{Lexicon, Reading, clean, read};

/// Words that rule out the change that follows them.
const NEGATIONS: [&str; 8] = ["no", "not", "dont", "never", "without", "nor", "skip", "forget"];
/// Words between a negation and the change that it rules out.
const BETWEEN: [&str; 11] = ["the", "a", "an", "any", "that", "to", "want", "need", "do", "really", "please"];
/// Words after a noun that is ruled out: "no restart please", but not "no restart api".
const AFTER_NOUN: [&str; 13] =
    ["please", "pls", "now", "then", "needed", "necessary", "after", "today", "at", "here", "thanks", "ok", "instead"];

/// Returns a message without the clauses that rule a change out, if its other clauses ask for another one. `None` for other messages.
pub(in crate::offline) fn without_ruled_out(message: &str, lexicon: &Lexicon) -> Option<String> {
    if message.contains('?') || message.contains("```") || message.contains(" -- ") {
        return None;
    }
    let clauses = clauses_of(message);
    let is_out = |clause: &&String| !verbs_ruled_out(clause).is_empty() || is_not_that(clause);
    let (ruled_out, kept): (Vec<&String>, Vec<&String>) = clauses.iter().partition(is_out);
    if ruled_out.is_empty() || kept.is_empty() {
        return None;
    }
    let mut rest = kept.iter().map(|clause| clause.as_str()).collect::<Vec<&str>>().join(" ");
    let mut reading = read(&rest, lexicon);
    // "Don't scale it, just restart".
    let is_open = reading.names.is_empty() && !reading.pronoun && reading.kind.is_none() && reading.words.len() <= 4;
    if is_open && ruled_out.iter().any(|clause| read(clause, lexicon).pronoun) {
        rest.push_str("it");
        reading = read(&rest, lexicon);
    }
    let verb = reading.verb.filter(|verb| !verb.is_read() && reading.act.is_none() && !reading.has_condition())?;
    // "Don't delete cart in shop, only restart it".
    let named: Vec<Reading> = ruled_out.iter().map(|clause| read(clause, lexicon)).collect();
    if reading.names.is_empty()
        && reading.pronoun
        && let [Reading { names, namespace, .. }] = &named[..]
        && let [name] = &names[..]
    {
        let place = namespace.as_ref().map(|namespace| format!(" in {namespace}")).unwrap_or_default();
        let is_pronoun = |word: &str| matches!(clean(word).to_lowercase().as_str(), "it" | "that" | "this");
        let named: Vec<&str> = rest.split_whitespace().map(|word| if is_pronoun(word) { name } else { word }).collect();
        rest = named.join(" ") + &place;
        reading = read(&rest, lexicon);
    }
    let is_other = ruled_out.iter().all(|clause| !verbs_ruled_out(clause).contains(&verb));
    // "Don't restart web, scale it": the name is in the clause that is left out.
    let has_object = !reading.names.is_empty() || ruled_out.iter().all(|clause| read(clause, lexicon).names.is_empty());
    let has_value = reading.image.is_some() || reading.version.is_some() || reading.replicas.is_some();
    let refers =
        !reading.names.is_empty() || reading.pronoun || reading.pick.is_some() || reading.kind.is_some() || has_value;
    (is_other && has_object && refers).then_some(rest)
}

/// "Errors in the shop, roll it back": returns the message without a remark that is about a place which the cluster does not have. The change
/// after it has an object of its own. `None` for other messages.
pub(in crate::offline) fn without_remark(message: &str, lexicon: &Lexicon) -> Option<String> {
    let clauses = clauses_of(message);
    let [remark, rest @ ..] = &clauses[..] else { return None };
    let rest = rest.join(" ");
    let (said, asked) = (read(remark, lexicon), read(&rest, lexicon));
    let place = said.namespace.as_ref().or(said.unknown_place.as_ref())?;
    let is_unknown =
        !lexicon.namespaces.is_empty() && !lexicon.has_namespace(place) && lexicon.namespace_like(place).is_none();
    // "In qa, restart it": the place of the change.
    let at = said.words.iter().position(|word| word == place)?;
    let states = said.words[..at].iter().any(|word| {
        !matches!(
            &**word,
            "in" | "on"
                | "for"
                | "from"
                | "the"
                | "our"
                | "my"
                | "ok"
                | "okay"
                | "hm"
                | "hmm"
                | "so"
                | "and"
                | "now"
                | "then"
                | "please"
        )
    });
    let is_remark = said.change_verbs().is_empty()
        && said.names.is_empty()
        && said.pick.is_none()
        && said.state.is_none()
        && !said.pronoun
        && !said.has_any(&["namespace", "ns"]);
    let is_change = asked.verb.is_some_and(|verb| !verb.is_read()) && asked.act.is_none();
    let has_object = asked.pronoun || !asked.names.is_empty();
    (is_unknown && states && is_remark && is_change && has_object && asked.namespace.is_none()).then_some(rest)
}

/// "Not that", "no not this": a clause that only rules out what was spoken of.
fn is_not_that(clause: &str) -> bool {
    let words: Vec<String> = clause.split_whitespace().map(|word| clean(word).to_lowercase()).collect();
    let is_plain =
        |word: &String| matches!(&**word, "no" | "not" | "that" | "this" | "ok" | "sorry" | "wait" | "oops" | "hm");
    words.iter().any(|word| word == "not")
        && words.iter().any(|word| matches!(&**word, "that" | "this"))
        && words.iter().all(is_plain)
}

/// Returns the changes that a message rules out.
pub(in crate::offline) fn changes_ruled_out(message: &str) -> Vec<Verb> {
    if message.contains('?') {
        return Vec::new();
    }
    clauses_of(message).iter().flat_map(|clause| verbs_ruled_out(clause)).collect()
}

/// Splits a message into clauses: at punctuation, and before "but".
fn clauses_of(message: &str) -> Vec<String> {
    let mut clauses: Vec<String> = vec![String::new()];
    for word in message.split_whitespace() {
        if word.eq_ignore_ascii_case("but") || word == "-" || word == "–" {
            clauses.push(String::new());
            continue;
        }
        if let Some(clause) = clauses.last_mut() {
            clause.push_str(word);
            clause.push(' ');
        }
        if word.ends_with([',', ';', '.', '!', ':']) {
            clauses.push(String::new());
        }
    }
    clauses.retain(|clause| !clause.trim().is_empty());
    clauses
}

/// Returns the changes that a clause rules out; none if it also asks for one.
fn verbs_ruled_out(clause: &str) -> Vec<Verb> {
    let words: Vec<String> =
        clause.split_whitespace().map(|word| clean(word).to_lowercase().replace(['\'', '’'], "")).collect();
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    let mut found = Vec::new();
    for at in 0..words.len() {
        let Some((verb, length)) = change_at(&words, at) else { continue };
        let lead = (0..at).rev().find(|before| !BETWEEN.contains(&word(*before)));
        let Some(negation) = lead.filter(|lead| NEGATIONS.contains(&word(*lead))) else {
            let is_part = (at.saturating_sub(3)..at)
                .any(|before| change_at(&words, before).is_some_and(|(_, length)| before + length > at));
            if is_part {
                continue;
            }
            return Vec::new();
        };
        // "No restart api" may be "no, restart api".
        let next = word(at + length);
        let is_noun = word(negation) != "no" || next.is_empty() || AFTER_NOUN.contains(&next);
        // "Don't forget to restart it".
        let asks_to = word(negation) == "forget" && negation > 0 && NEGATIONS.contains(&word(negation - 1));
        if !is_noun || asks_to {
            return Vec::new();
        }
        found.push(verb);
    }
    found
}

/// Returns the change that begins at a word, also as a noun, with its number of words.
pub(super) fn change_at(words: &[String], at: usize) -> Option<(Verb, usize)> {
    let word = words.get(at)?;
    // The noun or verb for another version.
    if matches!(&**word, "update" | "upgrade" | "downgrade" | "bump" | "deploy") {
        return Some((Verb::SetImage, 1));
    }
    let stems = [word.strip_suffix("ing"), word.strip_suffix('s'), word.strip_suffix("ion")];
    let phrase = VERBS.iter().filter(|(_, verb)| !verb.is_read()).find(|(phrase, _)| {
        let length = phrase.split(' ').count();
        let matches = words.len() >= at + length && phrase.split(' ').zip(&words[at..]).all(|(part, own)| part == own);
        let is_form = |stem: &&str| *phrase == *stem || phrase.strip_suffix('e') == Some(stem);
        matches || stems.iter().flatten().any(is_form)
    })?;
    Some((phrase.1, phrase.0.split(' ').count()))
}

impl Reading {
    /// Returns the namespaces that a message rules out: "not in prod", "anywhere but staging".
    pub(in crate::offline) fn places_ruled_out(&self, namespaces: &[String]) -> Vec<String> {
        let is_filler = |word: &str| matches!(word, "in" | "on" | "for" | "from" | "the" | "of" | "any" | "that");
        let rules_out = |at: usize| {
            let lead = (0..at).rev().find(|before| !is_filler(self.word(*before)));
            lead.is_some_and(|lead| match self.word(lead) {
                "not" | "except" | "without" | "never" => true,
                "but" => {
                    lead > 0 && matches!(self.word(lead - 1), "anywhere" | "everywhere" | "all" | "any" | "everything")
                }
                "instead" => at - lead > 1,
                _ => false,
            })
        };
        let mut found: Vec<String> = Vec::new();
        for at in 0..self.words.len() {
            if namespaces.iter().any(|name| name == self.word(at)) && rules_out(at) {
                found.push(self.word(at).to_owned());
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clause_that_rules_a_change_out_is_left_out() {
        let rest = |message: &str| without_ruled_out(message, &Lexicon::default());
        assert_eq!(rest("hm no rollback please, move it to cart:2.0.1").as_deref(), Some("move it to cart:2.0.1 "));
        assert_eq!(rest("don't delete it, restart it").as_deref(), Some("restart it "));
        assert_eq!(rest("not a restart. scale it to 4").as_deref(), Some("scale it to 4 "));
        assert_eq!(rest("don't restart web, scale it to 3").as_deref(), Some("scale web to 3"));
        assert_eq!(rest("don't delete cart in shop, only restart it").as_deref(), Some("only restart cart in shop"));
        for message in [
            "no, restart it",
            "no restart api",
            "don't delete it",
            "don't forget to restart it, and scale it to 2",
            "restart it",
        ] {
            assert_eq!(rest(message), None, "{message}");
        }
        assert_eq!(changes_ruled_out("ok no rollback then"), [Verb::RolloutUndo]);
    }
}
