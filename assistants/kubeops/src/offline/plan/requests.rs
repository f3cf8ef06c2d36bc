//! Reads the request from a message of several sentences.

use crate::command::{Command, Verb};
use crate::conversation::Conversation;
use crate::offline::words::{Act, Lexicon, Reading, is_change_phrase, read};

use super::{Next, Planner, next_step, reply};

pub(super) const LATER: &str = "I cannot change or look at something later or by myself, and I cannot remind anyone, so I requested nothing. Ask again when it is time.";

/// The maximum number of changes in one message.
const MAX_CHANGES: usize = 4;

/// Requests of several changes in one message, each with its own object: "scale web to 4 and restart api". `None` for other messages.
pub(super) fn several(message: &str, conversation: &Conversation, lexicon: &Lexicon) -> Option<Next> {
    if let Some(next) = command_lines(message, conversation, lexicon) {
        return Some(next);
    }
    let whole = read(message, lexicon);
    if whole.act.is_some() || whole.manifest.is_some() || whole.has_condition() || whole.has_schedule() {
        return None;
    }
    match with_own_values(message, &whole, lexicon) {
        Some(Values::Own(readings)) => return Some(all_of(readings, conversation)),
        Some(Values::Unclear) => return Some(reply("Which value do you want for which object?")),
        None => {}
    }
    let mut readings: Vec<Reading> = clauses(message, lexicon).iter().map(|clause| read(clause, lexicon)).collect();
    readings.retain(|reading| reading.verb.is_some_and(|verb| !verb.is_read()) && reading.act.is_none());
    if !(2..=MAX_CHANGES).contains(&readings.len()) {
        return None;
    }
    for at in 0..readings.len() {
        // "Restart web and scale it to 3".
        if at > 0 && readings[at].names.is_empty() && readings[at].pronoun && !readings[at].each {
            readings[at].names = readings[at - 1].names.clone();
            readings[at].kind = readings[at].kind.clone().or_else(|| readings[at - 1].kind.clone());
        }
        if !readings[at].names.is_empty() {
            readings[at].pronoun = false;
            readings[at].each = readings[at].names.len() > 1;
        }
        // "Restart it and bump gateway to 4.1.1": what was spoken of, and another object.
        let is_spoken_of = at == 0 && readings[at].pronoun && !readings[at].each;
        let is_open = readings[at].names.is_empty() && readings[at].pick.is_none() && readings[at].state.is_none();
        if is_open && !is_spoken_of {
            return None;
        }
    }
    // "Both in logistics", "in prod, scale web and restart api".
    let mut namespaces: Vec<String> = readings.iter().filter_map(|reading| reading.namespace.clone()).collect();
    namespaces.dedup();
    if let [only] = &namespaces[..] {
        readings.iter_mut().for_each(|reading| reading.namespace = Some(only.clone()));
    }
    Some(all_of(readings, conversation))
}

/// Several command lines of kubectl, one below the other, that change something. If one of them cannot be requested, none is. A shell's
/// separators are not read.
fn command_lines(message: &str, conversation: &Conversation, lexicon: &Lexicon) -> Option<Next> {
    let lines: Vec<&str> =
        message.split([';', '\n', '&', '|']).map(str::trim).filter(|line| !line.is_empty()).collect();
    let is_command = |line: &&str| line.to_lowercase().starts_with("kubectl ");
    if !(2..=MAX_CHANGES).contains(&lines.len()) || !lines.iter().all(is_command) {
        return None;
    }
    let readings: Vec<Reading> = lines.iter().map(|line| read(line, lexicon)).collect();
    let is_change = |reading: &&Reading| reading.verb.is_some_and(|verb| !verb.is_read()) && reading.act.is_none();
    let changes = readings.iter().filter(is_change).count();
    if changes == 0 {
        return None;
    }
    if message.contains([';', '&', '|']) {
        return Some(reply("I requested nothing: I do not run a shell. Please send one command per line."));
    }
    if changes < readings.len() {
        return Some(reply("I requested nothing: please send commands that do not change anything on their own."));
    }
    Some(all_of(readings, conversation))
}

/// "Restart waf, and tell me the gateway image": a change of one object, and a question about another. The answer follows the decision
/// about the change. `None` for other messages.
pub(super) fn change_and_look(message: &str, conversation: &Conversation, lexicon: &Lexicon) -> Option<Next> {
    const LOOKS: [&str; 12] = [
        "tell me",
        "show me",
        "show",
        "list",
        "what",
        "whats",
        "which",
        "how many",
        "give me the",
        "describe",
        "is",
        "are",
    ];
    let words: Vec<&str> = message.split_whitespace().collect();
    let plain: Vec<String> =
        words.iter().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()).collect();
    let begins_look = |at: usize| {
        let rest = format!("{} ", plain[at..].join(" "));
        LOOKS.iter().any(|phrase| rest.starts_with(&format!("{phrase} ")))
    };
    let at = (2..words.len()).find(|at| plain[at - 1] == "and" && begins_look(*at))?;
    let (change, look) = (words[..at - 1].join(" "), words[at..].join(" "));
    let (changing, looking) = (read(&change, lexicon), read(&look, lexicon));
    let is_change = changing.verb.is_some_and(|verb| !verb.is_read()) && changing.act.is_none();
    let is_about_one = changing.names.len() == 1 || changing.names.is_empty() && changing.pronoun;
    let is_look = looking.verb.is_none_or(Verb::is_read) && looking.act.is_none() && looking.change_verbs().is_empty();
    let is_other = looking.names.len() == 1 && looking.names != changing.names && !looking.pronoun;
    let is_later =
        ["once", "when", "after"].iter().any(|word| looking.has(word) && looking.has_any(&["done", "is", "its"]));
    if !is_change || !is_about_one || !is_look || !is_other || is_later || changing.has_condition() {
        return None;
    }
    let has_changed = conversation.steps.iter().any(|step| !step.command.verb.is_read());
    let (first, second) = (next_step(&change, conversation), next_step(&look, conversation));
    Some(match (first, second) {
        (run @ Next::Run(_), _) if !has_changed => run,
        (Next::Reply(done), Next::Reply(seen)) => reply(format!("{done}\n\n{seen}")),
        (_, run @ Next::Run(_)) => run,
        (run @ Next::Run(_), _) => run,
    })
}

/// Plans several changes together, or returns the question or read that one of them needs.
fn all_of(readings: Vec<Reading>, conversation: &Conversation) -> Next {
    let (mut changes, mut reads): (Vec<Command>, Vec<Command>) = (Vec::new(), Vec::new());
    let first = readings[0].clone();
    for reading in readings {
        match (Planner { conversation, reading }).wanted() {
            Next::Run(commands) => {
                let (read, change): (Vec<Command>, Vec<Command>) =
                    commands.into_iter().partition(|command| command.verb.is_read());
                reads.extend(read);
                changes.extend(change);
            }
            question @ Next::Reply(_) => return question,
        }
    }
    if !reads.is_empty() {
        return Next::Run(reads);
    }
    Planner { conversation, reading: first }.run_or_answer(changes)
}

/// The values of a change of several objects.
enum Values {
    /// Each object has its own.
    Own(Vec<Reading>),
    /// There are several values, and which belongs to which object is not clear.
    Unclear,
}

/// "Api to 2 replicas and api-gateway to 3": one kind of change for several objects, each with its own value. `None` if there is only one
/// value.
fn with_own_values(message: &str, whole: &Reading, lexicon: &Lexicon) -> Option<Values> {
    let verb = whole.verb.filter(|verb| matches!(verb, Verb::Scale | Verb::SetImage | Verb::SetResources))?;
    if whole.names.len() < 2 || whole.change_verbs().len() > 1 {
        return None;
    }
    let words: Vec<&str> = message.split_whitespace().collect();
    let mut parts: Vec<String> = vec![String::new()];
    for (at, word) in words.iter().enumerate() {
        if at > 0 && (words[at - 1].ends_with([',', ';']) || matches!(*word, "and" | "plus" | "then" | "&")) {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut().filter(|_| !matches!(*word, "and" | "plus" | "then" | "&")) {
            part.push_str(word);
            part.push(' ');
        }
    }
    let value = |reading: &Reading| {
        let resources = (reading.limits.clone(), reading.requests.clone());
        (reading.replicas, reading.image.clone(), reading.version.clone(), resources)
    };
    let has_value = |reading: &Reading| value(reading) != value(&Reading::default());
    let (mut readings, mut waiting): (Vec<Reading>, Vec<Reading>) = (Vec::new(), Vec::new());
    // "And bot to 1" is read with the verb before it.
    let with_verb = |part: &String| {
        let own = read(part, lexicon);
        let word = if verb == Verb::Scale { "scale" } else { "set" };
        if own.verb.is_some() && !own.names.is_empty() { own } else { read(&format!("{word} {part}"), lexicon) }
    };
    for part in parts.iter().map(with_verb) {
        if has_value(&part) && !part.names.is_empty() {
            // "Web and api to 3": a value also counts for the objects named before it.
            for named in waiting.drain(..) {
                readings.push(Reading {
                    names: named.names,
                    namespace: named.namespace.or_else(|| part.namespace.clone()),
                    ..part.clone()
                });
            }
            readings.push(part);
        } else if !part.names.is_empty() {
            waiting.push(part);
        } else if has_value(&part) {
            return None;
        }
    }
    if !readings.windows(2).any(|pair| value(&pair[0]) != value(&pair[1])) {
        return None;
    }
    // "Set mailer back to mailer:20 and scale contacts to 4": two kinds of changes.
    let is_of_verb = |reading: &Reading| match verb {
        Verb::Scale => reading.replicas.is_some(),
        Verb::SetImage => reading.image.is_some() || reading.version.is_some(),
        _ => !reading.limits.is_empty() || !reading.requests.is_empty(),
    };
    if !readings.iter().all(is_of_verb) {
        return None;
    }
    if !waiting.is_empty() || readings.iter().any(|reading| reading.names.len() != 1) {
        return Some(Values::Unclear);
    }
    let namespaces: Vec<String> = readings.iter().filter_map(|reading| reading.namespace.clone()).collect();
    for reading in &mut readings {
        (reading.act, reading.verb, reading.pronoun) = (None, Some(verb), false);
        // "In staging: api to 2 and web to 3".
        reading.namespace =
            reading.namespace.take().or_else(|| whole.namespace.clone().filter(|_| namespaces.len() < 2));
    }
    Some(Values::Own(readings))
}

/// Splits a message before each change that it asks for.
fn clauses(message: &str, lexicon: &Lexicon) -> Vec<String> {
    let words: Vec<&str> = message.split_whitespace().collect();
    let plain: Vec<String> =
        words.iter().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()).collect();
    let mut clauses: Vec<String> = vec![String::new()];
    for (at, word) in words.iter().enumerate() {
        let is_joint = |word: &str| matches!(word, "and" | "then" | "plus" | "also" | "");
        let ends = at > 0 && (words[at - 1].ends_with([',', '.', ';', '!', ':']) || is_joint(&plain[at - 1]));
        // "And bump gateway to 4.1.1": only the value says which change it is.
        let is_implied = || {
            let rest = read(&words[at..].join(" "), lexicon);
            let moves =
                matches!(&*plain[at], "bump" | "upgrade" | "update" | "downgrade" | "move" | "put" | "give" | "bring");
            moves && rest.verb.is_some_and(|verb| !verb.is_read()) && rest.names.len() == 1
        };
        if ends && (is_change_phrase(&plain[at..]) || is_implied()) {
            clauses.push(String::new());
        }
        if let Some(clause) = clauses.last_mut() {
            clause.push_str(word);
            clause.push(' ');
        }
    }
    clauses
}

/// Reads the request in a message: the last sentence that is one.
pub(super) fn read_request(message: &str, lexicon: &Lexicon) -> Reading {
    let read = |text: &str| read(text, lexicon);
    let sentences = sentences(message);
    if sentences.len() > 8 || message.contains("```") || message.contains(" -- ") {
        return read(message);
    }
    let is_request = |reading: &Reading| {
        let refers = reading.pronoun || reading.state.is_some() && reading.pick.is_none();
        reading.verb.is_some() && (reading.kind.is_some() || !reading.names.is_empty() || refers)
    };
    let whole = read(message);
    let is_change = |reading: &Reading| reading.verb.is_some_and(|verb| !verb.is_read());
    let all: Vec<Reading> = sentences.iter().map(|sentence| read(sentence)).collect();
    // "Did the other pod restart as well? Not sync": a question about a change is not a request.
    let about: Vec<&Reading> = all.iter().filter(|sentence| !sentence.change_verbs().is_empty()).collect();
    let asks_to = |sentence: &Reading| {
        sentence.asks_politely()
            || ["is it possible", "why dont you", "how about", "what about", "forget to"]
                .iter()
                .any(|phrase| sentence.says(phrase))
    };
    let is_question = |sentence: &&Reading| (sentence.asks() || sentence.is_question) && !asks_to(sentence);
    // "Should be safe to delete that pod, I guess? Please do."
    let is_order = |sentence: &Reading| {
        matches!(
            &*sentence.words.join(" "),
            "please do" | "pls do" | "do it" | "please do it" | "go ahead" | "then do it"
        )
    };
    if is_change(&whole)
        && about.len() == 1
        && all.last().is_some_and(is_order)
        && !about[0].forbids()
        && !about[0].has_condition()
        && !about[0].says("what would")
        && !about[0].says("what happens")
    {
        return Reading { act: None, ..about[0].clone() };
    }
    if is_change(&whole) && whole.has_question && !about.is_empty() && about.iter().all(is_question) {
        let act = about.iter().all(|sentence| sentence.asks()).then_some(Act::Spoken);
        return Reading { act: act.or(whole.act), ..whole };
    }
    // "No one delete anything": the whole message is about what must not be done.
    let bans = all.iter().any(|sentence| sentence.forbids());
    if bans && whole.verb.is_some_and(|verb| !verb.is_read()) {
        let orders = all.iter().rev().find(|sentence| {
            is_change(sentence)
                && sentence.act.is_none()
                && !sentence.forbids()
                && (!sentence.names.is_empty() || sentence.pronoun)
        });
        // "Do not restart it. Is the dev version ok?": the question is answered.
        let asked = all.iter().rev().find(|sentence| {
            let is_read = sentence.verb.is_none_or(Verb::is_read) && sentence.act.is_none();
            let has_object = !sentence.names.is_empty() || sentence.namespace.is_some() || sentence.kind.is_some();
            is_read && has_object && (sentence.asks() || sentence.is_question || sentence.asks_politely())
        });
        if let Some(asked) = asked {
            return asked.clone();
        }
        // "Don't restart it, just show me what it says".
        let told = message.split([',', '.', ';', '!', '?']).rev().map(read).find(|clause| {
            // "Just tell me how web is doing".
            let asks = clause.has_any(&["how", "hows", "what", "whats", "which"]) && !clause.names.is_empty();
            (clause.verb.is_some_and(Verb::is_read) || clause.verb.is_none() && asks)
                && clause.act.is_none()
                && (clause.pronoun || !clause.names.is_empty())
        });
        if let Some(told) = told.filter(|told| told.change_verbs().is_empty()) {
            let names = if told.names.is_empty() { whole.names.clone() } else { told.names.clone() };
            let pronoun = told.pronoun && names.is_empty();
            return Reading { namespace: told.namespace.clone().or(whole.namespace), names, pronoun, ..told };
        }
        // "Don't delete it. Restart it instead."
        return match orders.filter(|_| !all.iter().any(|sentence| sentence.asks() || sentence.has_question)) {
            Some(order)
                if all.iter().any(|sentence| {
                    sentence.forbids()
                        && !sentence.change_verbs().is_empty()
                        && sentence.change_verbs() != order.change_verbs()
                }) =>
            {
                order.clone()
            }
            _ => Reading { act: Some(Act::Spoken), ..whole },
        };
    }
    let Some(mut found) = all.iter().rev().find(|reading| is_request(reading)).cloned() else { return whole };
    // "What does web look like? Describe pls": the verb of the last sentence, for the object of the one before.
    if let Some(last) = all.last().filter(|last| all.len() > 1 && is_bare_verb(last))
        && found.verb == Some(Verb::Get)
        && found.act.is_none()
    {
        found.verb = last.verb;
        found.is_implied = false;
    }
    // "No, not auth, auth-proxy. Auth is fine": the correction counts, not the remark.
    let begins = |sentence: &Reading| {
        sentence.words.first().is_some_and(|word| {
            matches!(&**word, "no" | "not" | "nope" | "nah" | "wait" | "sorry" | "wrong" | "oops" | "actually")
        })
    };
    if let Some(correction) = all.first().filter(|first| begins(first) && !first.names.is_empty())
        && found.is_implied
    {
        return correction.clone();
    }
    // "We pushed 7.2.0. Roll back NOW": the order counts, for what the other sentences name.
    let order = all.iter().rev().find(|sentence| {
        // "Please put menu:2.0.1" has no verb of its own, and names the value.
        let gives_image = sentence.verb == Some(Verb::SetImage) && sentence.image.is_some() && !sentence.asks();
        is_change(sentence) && sentence.act.is_none() && (!sentence.change_verbs().is_empty() || gives_image)
    });
    if let Some(order) = order.filter(|_| found.change_verbs().is_empty() && !is_change(&found)) {
        let mut order = order.clone();
        if order.names.is_empty() && !order.pronoun {
            order.names.clone_from(&whole.names);
            order.kind = order.kind.or_else(|| whole.kind.clone());
        }
        found = order;
    }
    // "Ledger is only on staging. Restart it there."
    if found.pronoun && found.names.is_empty() && !found.each {
        let others: Vec<String> = whole.names.iter().filter(|name| !found.words.contains(name)).cloned().collect();
        found.pronoun = others.is_empty();
        found.names = others;
    }
    // "The second and the third hang. Delete those two."
    if found.pronoun
        && found.pick.is_none()
        && found.names.is_empty()
        && let Some(other) = all.iter().find(|reading| reading.pick.is_some())
    {
        (found.pick, found.picks) = (other.pick, other.picks.clone());
    }
    // "That should be 0.1.3. Can you change it?"
    found.version = found.version.or(whole.version);
    found.image = found.image.or(whole.image);
    // "Anything odd in www? List the pods."
    if found.namespace.is_none() && !found.all_namespaces {
        found.namespace = whole.namespace.filter(|name| lexicon.has_namespace(name));
    }
    found
}

/// "Describe pls", "logs please": a verb that reads, without an object.
fn is_bare_verb(sentence: &Reading) -> bool {
    matches!(sentence.verb, Some(Verb::Describe | Verb::Logs | Verb::Events))
        && sentence.act.is_none()
        && sentence.words.len() <= 3
        && sentence.names.is_empty()
        && sentence.namespace.is_none()
        && sentence.pick.is_none()
        && sentence.state.is_none()
}

/// Replies to a change for later, or to two changes in one sentence: which change is meant for which object is not guessed.
pub(super) fn is_several_requests(request: &Reading) -> Option<Next> {
    let is_change = request.verb.is_some_and(|verb| !verb.is_read());
    if !is_change || request.act.is_some() {
        return None;
    }
    if request.has_schedule() {
        return Some(reply(LATER));
    }
    let verbs = request.change_verbs();
    (verbs.len() > 1).then(|| {
        let words: Vec<String> = verbs.iter().map(|verb| format!("“{}”", verb.words())).collect();
        reply(format!(
            "I request one kind of change at a time, so I requested nothing: say {} alone.",
            words.join(" or ")
        ))
    })
}

/// Reads the last of several sentences.
pub(super) fn last_sentence(message: &str, lexicon: &Lexicon) -> Option<Reading> {
    let sentences = sentences(message);
    (sentences.len() > 1).then(|| sentences.last().map(|sentence| read(sentence, lexicon))).flatten()
}

/// Splits a message into sentences. A dot within a name or an image does not end one.
fn sentences(message: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut rest = message;
    loop {
        let is_end = |(at, c): &(usize, char)| {
            let after = &rest[at + c.len_utf8()..];
            matches!(c, '.' | '?' | '!' | ';') && (after.is_empty() || after.starts_with(char::is_whitespace))
        };
        match rest.char_indices().find(is_end) {
            Some((at, c)) => {
                let (sentence, after) = rest.split_at(at + c.len_utf8());
                sentences.push(sentence);
                rest = after;
            }
            None => {
                if !rest.trim().is_empty() {
                    sentences.push(rest);
                }
                return sentences;
            }
        }
    }
}
