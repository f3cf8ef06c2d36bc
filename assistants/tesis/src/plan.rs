//! What a turn does: the intent, the query with the topic carried over, the filters, and the sources at hand.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use threadkeep::core::StoreError;
use threadkeep::{Map, Message, Role, Scope, Value};

use crate::answer;
use crate::clave::{ClaveKey, References, fold_text};
use crate::corpus::{Corpus, Item};
use crate::filters::{self, Filters};
use crate::history::{self, MAX_SOURCES};
use crate::intent::{self, Intent};
use crate::record::Tipo;
use crate::reference;
use crate::search::{FoundItem, SearchRequest, content_words, matches};

/// The field of an answer's data that contains the search query.
pub(crate) const QUERY: &str = "consulta";
/// The field of an answer's data that contains the filters.
pub(crate) const FILTERS: &str = "filtros";
/// The field of an answer's data that contains the numbers of the sources that it was about.
pub(crate) const FOCUS: &str = "foco";
/// The field of an answer's data that contains the numbers of the sources that it cites, if not all.
pub(crate) const CITED: &str = "citadas";
/// The maximum number of sources of an answer.
pub(crate) const MAX_ANSWER_SOURCES: usize = 5;
/// The maximum number of words of a topic that are carried over to a question with words of its own.
const TOPIC_WORDS: usize = 2;
/// The minimum number of words of a question that a source which no answer cited must contain to be preferred to the cited ones.
const MIN_ELSEWHERE: usize = 3;
/// The maximum length of a query, in characters.
const QUERY_CHARACTERS: usize = 1_000;

/// The plan of a turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Plan {
    /// The plan with the other intent, if the message is ambiguous and there is a decider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) alternative: Option<Box<Plan>>,
    /// What can decide between the plans.
    #[serde(skip_serializing_if = "Deciders::is_empty")]
    pub(crate) deciders: Deciders,
    pub(crate) intent: Intent,
    pub(crate) reason: String,
    pub(crate) wants_more: bool,
    /// Whether the message is not about law.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_off_topic: bool,
    /// The message with its misspelt words corrected.
    pub(crate) question: String,
    /// The query, with the topic carried over.
    pub(crate) query: String,
    /// Whether the message contains more than filters.
    pub(crate) has_own_words: bool,
    /// Whether a message that contains only filters asks about the topic alone: `¿ni siquiera aisladas?`
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) keeps_topic: bool,
    pub(crate) filters: Filters,
    /// The filters of the message itself, without those of the topic.
    pub(crate) own_filters: Filters,
    pub(crate) registros: Vec<i64>,
    pub(crate) claves: Vec<(String, Option<u8>)>,
    /// The keys of everything that was cited in the conversation.
    pub(crate) cited: BTreeSet<String>,
    /// The sources at hand, for a reuse.
    pub(crate) sources: Vec<FoundItem>,
    /// The 1-based numbers of the sources that the message refers to.
    pub(crate) focus: Vec<usize>,
    /// Whether the message asks for facts about a source that no earlier answer cited: `la clave de la tesis del arraigo`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) asks_facts: bool,
    /// The text of the last answer.
    pub(crate) previous: String,
    /// The registros that were cited before.
    pub(crate) discussed: BTreeSet<i64>,
    /// The number of messages before this turn.
    pub(crate) messages: u64,
    pub(crate) corpus_as_of: String,
}

/// What decides the intent of an ambiguous message. If nothing does, the rules decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Deciders {
    /// The nearness of the query to the sources at hand, which only an embedder can measure.
    pub(crate) nearness: bool,
    /// A language model.
    pub(crate) model: bool,
}

impl Deciders {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Plans a turn after a conversation, oldest message first. An ambiguous message gets a plan for each intent if there are deciders.
pub(crate) async fn plan(
    corpus: &Corpus,
    scope: &Scope,
    question: &str,
    messages: &[Message],
    message_count: u64,
    deciders: Deciders,
) -> Result<Plan, StoreError> {
    let historical = history::extract_historical_sources(messages, MAX_SOURCES);
    let last = last_answer(messages);
    let last_keys: Vec<String> =
        last.iter().flat_map(|answer| &answer.content.sources).filter_map(history::key).collect();
    let items = corpus.by_key(scope, &historical.iter().map(|source| source.key.clone()).collect::<Vec<_>>()).await?;
    let past = with_texts(history::past_messages(messages), &items, messages);
    let question = &corrected(corpus, scope, question, &past).await?;
    let mut classified = intent::classify_corrected(question, &past);
    if classified.is_off_topic && !past.iter().any(|message| !message.sources.is_empty()) {
        // The lists may lack words that the corpus contains.
        let words = corpus.known_words(scope, question).await?;
        if !words.is_empty() && words.iter().all(|(_, is_known)| *is_known) {
            classified = intent::Classification { intent: Intent::NewSearch, is_off_topic: false, ..classified };
        }
    }
    if classified.intent == Intent::Reuse && intent::selects_one_source(question) {
        let filters = filters::split(question).filters;
        if !items.iter().filter_map(Item::tesis).any(|tesis| filters.passes(tesis)) {
            classified.intent = Intent::NewSearch;
        }
    }
    if classified.intent == Intent::Reuse
        && classified.is_by_topic
        && is_answered_elsewhere(corpus, scope, question, &items).await?
    {
        classified.intent = Intent::NewSearch;
    }
    let described = match classified.intent {
        Intent::Reuse => described_elsewhere(corpus, scope, question, &items).await?,
        _ => None,
    };
    if described.is_some() {
        classified.intent = Intent::NewSearch;
    }
    let description = corpus.description(scope).await?.unwrap_or_default();
    let cited = messages.iter().flat_map(|message| &message.content.sources).filter_map(history::key).collect();
    let base = Plan {
        intent: classified.intent,
        reason: classified.reason.to_owned(),
        wants_more: classified.wants_more,
        is_off_topic: classified.is_off_topic,
        question: question.clone(),
        previous: last.map(|answer| answer.plain_text().into_owned()).unwrap_or_default(),
        discussed: history::extract_discussed_tesis(messages),
        messages: message_count,
        corpus_as_of: description.as_of,
        cited,
        ..Plan::default()
    };
    let topic = Topic::of(messages);
    let with_intent = |intent: Intent| {
        let mut plan = Plan { intent, ..base.clone() };
        match intent {
            Intent::None => {}
            Intent::Reuse => {
                plan.query.clone_from(&topic.query);
                plan.filters.clone_from(&topic.filters);
                reuse(&mut plan, question, &historical, &items, &last_keys, messages);
            }
            Intent::NewSearch => match &described {
                Some(description) => {
                    plan.asks_facts = true;
                    search(&mut plan, description, &Topic::default());
                }
                None => search(&mut plan, intent::after_rejection(question).unwrap_or(question), &topic),
            },
        }
        plan
    };
    let other = match classified.intent {
        Intent::Reuse => Some(Intent::NewSearch),
        Intent::NewSearch => Some(Intent::Reuse),
        Intent::None => None,
    };
    // A search embeds its query anyway, so measuring nearness before it costs nothing; before a reuse, it would.
    let nearness = deciders.nearness && classified.intent == Intent::NewSearch;
    let deciders = Deciders { nearness, ..deciders };
    let other = other.filter(|_| !deciders.is_empty() && classified.is_ambiguous && described.is_none());
    let alternative = other.map(|intent| Box::new(with_intent(intent)));
    let deciders = if alternative.is_some() { deciders } else { Deciders::default() };
    Ok(Plan { alternative, deciders, ..with_intent(classified.intent) })
}

/// Whether a source that no earlier answer cited contains more words of a question than every cited one.
async fn is_answered_elsewhere(
    corpus: &Corpus,
    scope: &Scope,
    question: &str,
    items: &[Item],
) -> Result<bool, StoreError> {
    if answer::asks_attribute(question) || content_words(question).split_whitespace().count() < MIN_ELSEWHERE {
        return Ok(false);
    }
    let request = SearchRequest { query: question.to_owned(), limit: MAX_ANSWER_SOURCES, ..SearchRequest::default() };
    let found = corpus.search(scope, &request).await?;
    let known: Vec<String> = items.iter().map(Item::key).collect();
    let text = |item: &Item| format!("{}\n{}", item.title(), item.text());
    let best = |texts: &[String]| matches(question, texts).into_iter().max().unwrap_or(0);
    let new: Vec<String> =
        found.iter().filter(|found| !known.contains(&found.item.key())).map(|found| text(&found.item)).collect();
    let (new, known) = (best(&new), best(&items.iter().map(text).collect::<Vec<_>>()));
    Ok(new > known && new >= MIN_ELSEWHERE)
}

/// Returns the description of a source that no earlier answer cited, if a message asks for facts about it and the corpus contains it.
async fn described_elsewhere(
    corpus: &Corpus,
    scope: &Scope,
    question: &str,
    items: &[Item],
) -> Result<Option<String>, StoreError> {
    let descriptions = reference::descriptions(question);
    let is_known = || !reference::described(&descriptions, &items.iter().collect::<Vec<_>>()).is_empty();
    let asks = References::of(question).is_empty()
        && answer::asks_attribute(question)
        && !intent::names_source(question)
        && reference::position_in_conversation(question, items.len()).is_none()
        && !is_known();
    for description in descriptions.iter().filter(|description| asks && description.is_specific) {
        let request =
            SearchRequest { query: description.text(), limit: MAX_ANSWER_SOURCES, ..SearchRequest::default() };
        let found = corpus.search(scope, &request).await?;
        if found.first().is_some_and(|found| description.is_of(&found.item)) {
            return Ok(Some(description.text()));
        }
    }
    Ok(None)
}

/// Returns a message with its misspelt words corrected. A word that the corpus contains is not misspelt.
async fn corrected(
    corpus: &Corpus,
    scope: &Scope,
    message: &str,
    past: &[intent::PastMessage],
) -> Result<String, StoreError> {
    let corrected = intent::corrected(message, past);
    let (own, other) = (fold_text(message), fold_text(&corrected));
    for (typed, _) in own.split_whitespace().zip(other.split_whitespace()).filter(|(typed, word)| typed != word) {
        if corpus.known_words(scope, typed).await?.iter().any(|(_, is_known)| *is_known) {
            return Ok(message.to_owned());
        }
    }
    Ok(corrected)
}

/// Adds the texts of the sources to the messages that cite them, so that words of a source are not another topic.
fn with_texts(mut past: Vec<intent::PastMessage>, items: &[Item], messages: &[Message]) -> Vec<intent::PastMessage> {
    if let Some(answer) = past.iter_mut().rev().find(|message| !message.sources.is_empty()) {
        let keys: Vec<String> =
            last_answer(messages).iter().flat_map(|answer| &answer.content.sources).filter_map(history::key).collect();
        let texts = items.iter().filter(|item| keys.contains(&item.key())).map(|item| item.text().to_owned());
        answer.sources.extend(texts);
    }
    past
}

/// Returns the last answer with sources.
fn last_answer(messages: &[Message]) -> Option<&Message> {
    let is_answer = |message: &&Message| {
        message.content.role == Role::Assistant
            && message.content.sources.iter().any(|source| history::key(source).is_some())
    };
    messages.iter().rev().find(is_answer)
}

/// What the conversation is about.
#[derive(Clone, Debug, Default)]
struct Topic {
    query: String,
    filters: Filters,
}

impl Topic {
    /// Reads the topic from the last answer that states its query, or from the last question with words of its own.
    fn of(messages: &[Message]) -> Self {
        for message in messages.iter().rev() {
            if let Some(data) =
                data(message).filter(|data| data.get(QUERY).is_some_and(|query| query.as_str() != Some("")))
            {
                let filters = data.get(FILTERS).cloned().and_then(|filters| serde_json::from_value(filters).ok());
                let query = data.get(QUERY).and_then(Value::as_str).unwrap_or_default().to_owned();
                return Self { query, filters: filters.unwrap_or_default() };
            }
        }
        let questions = messages.iter().rev().filter(|message| message.content.role == Role::User);
        let split = questions.map(|message| filters::split(&message.plain_text()));
        let with_words = split.into_iter().find(|split| !content_words(&split.rest).is_empty());
        with_words.map(|split| Self { query: split.rest, filters: split.filters }).unwrap_or_default()
    }
}

fn data(message: &Message) -> Option<Map> {
    message.content.data.as_ref()?.read().ok()
}

fn search(plan: &mut Plan, question: &str, topic: &Topic) {
    let question: String = question.chars().take(QUERY_CHARACTERS).collect();
    let References { registros, claves } = References::of(&question);
    plan.registros = registros;
    plan.claves = claves.into_iter().map(|clave| (clave.key, clave.epoca)).collect();
    let mut split = filters::split(&without_rejected(&question));
    let own = content_words(&split.rest);
    // Next to other filters only, the word names the kind: `dame jurisprudencia del Pleno`.
    let names_kind = fold_text(&split.rest).split_whitespace().any(|word| word == "jurisprudencia");
    if own.is_empty() && names_kind && !split.filters.is_empty() && split.filters.tipo.is_none() {
        split.filters.tipo = Some(Tipo::Jurisprudencia.name().to_owned());
    }
    let folded = fold_text(&question);
    plan.keeps_topic = folded.split_whitespace().any(|word| word == "siquiera");
    plan.has_own_words = !own.is_empty() || split.filters.is_empty();
    let is_carried = !topic.query.is_empty() && is_elliptic(&question, &own, plan.wants_more);
    plan.query = match (own.is_empty(), is_carried) {
        (true, true) => topic.query.clone(),
        (false, true) => {
            format!("{} {}", split.rest.trim(), first_words(&without_opposites(&topic.query, &own), TOPIC_WORDS))
        }
        _ => split.rest,
    };
    plan.own_filters = split.filters.clone();
    plan.filters = match is_carried && own.is_empty() {
        true => topic.filters.merged(&split.filters),
        false => split.filters,
    };
}

/// Returns a question without the part that it rules out after a comma: `la definitiva, no la provisional`.
fn without_rejected(question: &str) -> String {
    let is_rejected = |part: &&str| {
        let folded = fold_text(part);
        let words: Vec<&str> = folded.split_whitespace().collect();
        matches!(words.as_slice(), ["no", "la" | "el" | "las" | "los" | "de", _] | ["no", "de" | "del", _, _])
    };
    let parts: Vec<&str> = question.split(',').collect();
    let kept: Vec<&str> = parts.iter().copied().filter(|part| !is_rejected(part)).collect();
    if kept.is_empty() { question.to_owned() } else { kept.join(",") }
}

/// Pairs of words that replace each other when a question names one: after `suspensión definitiva`, `¿y la provisional?`
const OPPOSITES: [(&str, &str); 4] =
    [("provisional", "definitiva"), ("directo", "indirecto"), ("oral", "escrito"), ("aislada", "jurisprudencia")];

/// Returns the content words of a topic without the opposites of those of a question.
fn without_opposites(topic: &str, own: &str) -> String {
    let own: Vec<&str> = own.split_whitespace().collect();
    let is_replaced = |word: &str| {
        OPPOSITES.iter().any(|(one, other)| {
            word == *one && own.contains(other) && !own.contains(one)
                || word == *other && own.contains(one) && !own.contains(other)
        })
    };
    content_words(topic).split_whitespace().filter(|word| !is_replaced(word)).collect::<Vec<_>>().join(" ")
}

/// Returns the first words of the text.
fn first_words(text: &str, count: usize) -> String {
    text.split_whitespace().take(count).collect::<Vec<_>>().join(" ")
}

/// Whether a question lacks its topic: `¿y en materia penal?`, `¿en cuánto prescribe?`, `otra`.
fn is_elliptic(question: &str, own: &str, wants_more: bool) -> bool {
    if own.is_empty() {
        return true;
    }
    let folded = format!(" {} ", fold_text(question).split_whitespace().collect::<Vec<_>>().join(" "));
    let starts = |list: &[&str]| list.iter().any(|start| folded.starts_with(&format!(" {start} ")));
    let has = |list: &[&str]| list.iter().any(|phrase| folded.contains(&format!(" {phrase} ")));
    let names_topic = has(&[
        "sobre",
        "acerca",
        "respecto",
        "hablame",
        "que es",
        "que son",
        "otra pregunta",
        "otro tema",
        "cambiando",
    ]);
    let refers = has(&[
        "misma pregunta",
        "lo mismo",
        "tambien",
        "tampoco",
        "ese caso",
        "esos casos",
        "eso",
        "esa",
        "ese",
        "ellos",
        "ella",
        "quise decir",
        "quiero decir",
        "yo decia",
        "yo preguntaba",
        "me refiero",
        "me referia",
    ]);
    let typed = question.to_lowercase();
    let has_pronoun = typed.split(|c: char| !c.is_alphabetic()).any(|word| word == "él");
    let words = own.split_whitespace().count();
    if refers || has_pronoun {
        return true;
    }
    !names_topic
        && (words <= 2 && starts(&["y", "pero", "e"])
            || words == 1
                && !wants_more
                && starts(&[
                    "en cuanto",
                    "cuanto",
                    "cuando",
                    "como",
                    "quien",
                    "procede",
                    "puede",
                    "se puede",
                    "prescribe",
                ]))
}

fn reuse(
    plan: &mut Plan,
    question: &str,
    historical: &[history::HistoricalSource],
    items: &[Item],
    last_keys: &[String],
    messages: &[Message],
) {
    let found = |key: &String| {
        let item = items.iter().find(|item| item.key() == *key)?;
        let source = historical.iter().find(|source| source.key == *key).map(|source| &source.source);
        Some(FoundItem {
            rank_score: source.and_then(|source| source.score).unwrap_or_default(),
            distance: source.and_then(|source| source.distance),
            ..FoundItem::exact(item.clone())
        })
    };
    let last_found: Vec<FoundItem> = last_keys.iter().filter_map(found).collect();
    let all: Vec<FoundItem> = historical.iter().filter_map(|source| found(&source.key)).collect();
    let references = References::of(question);
    let is_named = |found: &FoundItem| {
        let Some(tesis) = found.item.tesis() else { return false };
        let clave = tesis.clave.as_deref().map(ClaveKey::of);
        references.registros.contains(&tesis.id_tesis)
            || clave.is_some_and(|own| references.claves.iter().any(|clave| clave.refers_to(&own)))
    };
    plan.sources = last_found;
    if all.iter().any(is_named) {
        if !plan.sources.iter().any(is_named) {
            plan.sources = all.iter().filter(|found| is_named(found)).cloned().collect();
        }
        plan.focus = (1..=plan.sources.len()).filter(|number| is_named(&plan.sources[number - 1])).collect();
        return;
    }
    let filters = filters::split(question).filters;
    let passing = || all.iter().filter(|found| found.item.tesis().is_some_and(|tesis| filters.passes(tesis)));
    let asks_which = asks_which(question) || intent::selects_one_source(question);
    if asks_which && !filters.is_empty() && passing().next().is_some() {
        plan.sources = passing().take(MAX_ANSWER_SOURCES).cloned().collect();
        plan.focus = (1..=plan.sources.len()).collect();
        return;
    }
    let in_order: Vec<FoundItem> = history::cited_in_order(messages).iter().filter_map(found).collect();
    if let Some(number) = reference::position_in_conversation(question, in_order.len()) {
        plan.sources = vec![in_order[number - 1].clone()];
        plan.focus = vec![1];
        return;
    }
    let described = reference::described(
        &reference::descriptions(question),
        &all.iter().map(|found| &found.item).collect::<Vec<_>>(),
    );
    if !described.is_empty() {
        let described: Vec<FoundItem> = described.into_iter().map(|index| all[index].clone()).collect();
        let position = |found: &FoundItem| plan.sources.iter().position(|own| own.item.key() == found.item.key());
        let positions: Option<Vec<usize>> = described.iter().map(position).collect();
        plan.focus = match positions {
            Some(positions) => positions.into_iter().map(|index| index + 1).collect(),
            None => {
                plan.sources = described;
                plan.sources.truncate(MAX_ANSWER_SOURCES);
                (1..=plan.sources.len()).collect()
            }
        };
        return;
    }
    if let Some(count) =
        reference::count_of_sources(question).filter(|count| (plan.sources.len() + 1..=all.len()).contains(count))
    {
        // The sources meant by `las tres` come from several answers. They are in the order in which these cited them.
        let recent: Vec<String> = all.iter().take(count).map(|found| found.item.key()).collect();
        plan.sources = in_order.into_iter().filter(|found| recent.contains(&found.item.key())).collect();
        plan.sources.truncate(MAX_ANSWER_SOURCES);
        plan.focus = (1..=plan.sources.len()).collect();
        return;
    }
    if plan.sources.len() == 1 && reference::names_several(question) && all.len() > 1 {
        // `¿Las emitió la misma sala?` is about the sources of the last two answers.
        plan.sources = all.into_iter().take(2).collect();
        plan.focus = vec![1, 2];
        return;
    }
    if plan.sources.len() == 1 && reference::names_other(question) {
        // `La otra` is a source of an earlier answer.
        let own = plan.sources[0].item.key();
        if let Some(other) = all.iter().find(|found| found.item.key() != own) {
            plan.sources = vec![other.clone()];
        }
        plan.focus = vec![1];
        return;
    }
    let texts = |found: &[FoundItem]| -> Vec<String> {
        let materias = |found: &FoundItem| found.item.tesis().map(|tesis| tesis.materias.join(" ")).unwrap_or_default();
        let text = |found: &FoundItem| format!("{}\n{}\n{}", found.item.title(), found.item.text(), materias(found));
        found.iter().map(text).collect()
    };
    let best = |found: &[FoundItem]| matches(question, &texts(found)).into_iter().max().unwrap_or(0);
    // `¿Obliga al juez?` names no topic.
    let names_topic = !reference::has_pronoun(question) && !answer::asks_force(question);
    if names_topic && best(&all) > best(&plan.sources) {
        // The question is about sources of an earlier answer.
        let counts = matches(question, &texts(&all));
        let max = counts.iter().copied().max().unwrap_or(0);
        plan.sources = all.into_iter().zip(counts).filter(|(_, count)| *count == max).map(|(found, _)| found).collect();
    }
    plan.sources.truncate(MAX_ANSWER_SOURCES);
    let last = last_answer(messages).and_then(data).unwrap_or_default();
    let numbers = |field: &str| -> Vec<usize> {
        last.get(field).cloned().and_then(|numbers| serde_json::from_value(numbers).ok()).unwrap_or_default()
    };
    let mut previous = numbers(FOCUS);
    if previous.is_empty() && answer::asks_attribute(question) {
        previous = numbers(CITED);
    }
    if !answer::asks_attribute(question) {
        // A question about the content may be about another source of the last answer.
        let counts = matches(question, &texts(&plan.sources));
        let max = counts.iter().copied().max().unwrap_or(0);
        let in_focus = previous.iter().filter_map(|number| counts.get(number.wrapping_sub(1))).max();
        if in_focus.is_some_and(|count| *count < max) {
            previous.clear();
        }
    }
    plan.focus = reference::focus(question, plan.sources.len(), &previous);
}

/// Whether a question asks which of the sources passes a filter: `¿cuál de esas es del Pleno?`
fn asks_which(question: &str) -> bool {
    let folded = fold_text(question);
    let joined = format!(" {} ", folded.split_whitespace().collect::<Vec<_>>().join(" "));
    folded.split_whitespace().any(|word| ["cual", "cuales", "alguna", "algunas"].contains(&word))
        || [" de esas ", " de ellas ", " de estas ", " entre esas ", " de las que "]
            .iter()
            .any(|phrase| joined.contains(phrase))
}

#[cfg(test)]
mod tests {
    use super::*;

    // S3.52
    #[test]
    fn the_topic_is_carried_over() {
        let topic = Topic { query: "¿Qué es el amparo indirecto?".to_owned(), filters: Filters::default() };
        let planned = |question: &str, wants_more: bool| {
            let mut plan = Plan { wants_more, ..Plan::default() };
            search(&mut plan, question, &topic);
            (content_words(&plan.query), plan.filters.describe())
        };
        for (question, query, filters) in [
            ("¿y en materia penal?", "amparo indirecto", "materia penal"),
            ("¿y en la Décima Época?", "amparo indirecto", "Décima Época"),
            ("la misma pregunta pero para amparo directo", "amparo directo amparo", ""),
            ("y sobre despido injustificado?", "despido injustificado", ""),
            ("¿Qué es la prescripción?", "prescripcion", ""),
        ] {
            assert_eq!(planned(question, false), (query.to_owned(), filters.to_owned()), "{question}");
        }
        assert_eq!(planned("dame más tesis", true).0, "amparo indirecto");
    }
}
