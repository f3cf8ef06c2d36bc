//! The sources at hand that a message refers to.

use threadkeep::Message;

use super::{CITED, FOCUS, MAX_ANSWER_SOURCES, Plan, data, last_answer};
use crate::answer;
use crate::clave::{ClaveKey, References, fold_text};
use crate::corpus::Item;
use crate::filters;
use crate::history;
use crate::intent;
use crate::reference;
use crate::search::{FoundItem, matches};

pub(super) fn reuse(
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
    let last_items: Vec<&Item> = plan.sources.iter().map(|found| &found.item).collect();
    if filters.is_empty()
        && let Some(others) = reference::not_rejected(question, &last_items)
    {
        plan.focus = others.into_iter().map(|index| index + 1).collect();
        return;
    }
    let mut described = reference::described(
        &reference::descriptions(question),
        &all.iter().map(|found| &found.item).collect::<Vec<_>>(),
    );
    if !described.is_empty() {
        if answer::compares(question) && reference::points_to_last(question) {
            // `Compárame esa con la del porcentaje`
            let keys: Vec<String> = previous(messages, true)
                .iter()
                .filter_map(|number| plan.sources.get(number.wrapping_sub(1)))
                .chain(plan.sources.first().filter(|_| plan.sources.len() == 1))
                .map(|found| found.item.key())
                .collect();
            let pointed = (0..all.len()).filter(|index| keys.contains(&all[*index].item.key()));
            let others = described.iter().copied().filter(|index| !keys.contains(&all[*index].item.key()));
            described = pointed.chain(others).collect();
        }
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
    let mut previous = previous(messages, answer::asks_attribute(question));
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

/// Returns the numbers of the sources that the last answer was about, or, if it was about none in particular, of those that it cites.
fn previous(messages: &[Message], or_cited: bool) -> Vec<usize> {
    let last = last_answer(messages).and_then(data).unwrap_or_default();
    let numbers = |field: &str| -> Vec<usize> {
        last.get(field).cloned().and_then(|numbers| serde_json::from_value(numbers).ok()).unwrap_or_default()
    };
    let focus = numbers(FOCUS);
    if focus.is_empty() && or_cited { numbers(CITED) } else { focus }
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
