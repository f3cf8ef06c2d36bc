//! Amounts with units, and rates: "31 litres at 1.62 a litre", "175 a month for 18 months", "7.5 hours a day, 4 days a week".

use threadkeep::{ChatMessage, Role};

use super::super::quoting::quoted_texts;
use super::super::results::{Calculation, last_answered, ordinal};
use super::numbers::{PRONOUNS, is_number, plain_numbers, spelled, tokens};
use super::steps::stem;
use super::{FILLERS, pricing};

/// Words between a rate and its unit: "12 an hour", "12 per hour", "12 la hora".
const PER: [&str; 9] = ["a", "an", "per", "every", "al", "la", "el", "por", "cada"];
/// Words that are no units.
const NOT_UNITS: [&str; 40] = [
    "at", "for", "in", "on", "to", "from", "with", "by", "off", "or", "each", "apiece", "per", "every", "if", "were",
    "was", "after", "before", "but", "not", "more", "less", "extra", "we", "percent", "plus", "minus", "times", "of",
    "al", "por", "cada", "de", "en", "con", "que", "si", "today", "back",
];
/// Words of conditions that a product of a rate and an amount would ignore.
const CONDITIONS: [&str; 16] = [
    "off", "half", "twice", "double", "discount", "free", "but", "not", "only", "unless", "until", "percent", "tax",
    "vat", "tip", "average",
];
/// Words of conditions on an amount, which a scaled amount would ignore, too.
const EXCEPTIONS: [&str; 8] = ["without", "except", "excluding", "minus", "plus", "less", "more", "extra"];
/// Words of the part of a message that asks, beside units.
const ASKING: [&str; 41] = [
    "how",
    "many",
    "what",
    "do",
    "did",
    "does",
    "will",
    "id",
    "ill",
    "we",
    "pay",
    "paying",
    "paid",
    "cost",
    "costs",
    "make",
    "makes",
    "earn",
    "get",
    "in",
    "for",
    "after",
    "total",
    "altogether",
    "there",
    "have",
    "to",
    "over",
    "per",
    "spend",
    "need",
    "use",
    "that",
    "come",
    "pls",
    "save",
    "saved",
    "of",
    "one",
    "me",
    "both",
];

/// Returns the rates of a text, each as its amount and the unit to which it refers.
pub(super) fn rates(text: &str) -> Vec<(String, String)> {
    let (found, _) = quantities(&tokens(&pricing::with_currencies(text)));
    found.into_iter().filter_map(|quantity| Some((quantity.value, quantity.per?))).collect()
}

/// A number with its unit: "31 litres", or a rate: "7.5 hours a day".
#[derive(Clone, Debug, PartialEq)]
struct Quantity {
    value: String,
    /// Empty if it was not named.
    unit: String,
    /// The unit to which a rate refers.
    per: Option<String>,
}

/// Returns a unit in the singular and in English.
pub(super) fn unit_of(word: &str) -> String {
    match word {
        "daily" | "dia" | "dias" => "day".to_owned(),
        "weekly" | "semana" | "semanas" | "semanal" => "week".to_owned(),
        "monthly" | "mes" | "meses" | "mensual" => "month".to_owned(),
        "yearly" | "annually" | "annual" | "ano" | "anos" | "anual" => "year".to_owned(),
        "hourly" | "hora" | "horas" | "hrs" | "hr" => "hour".to_owned(),
        "liter" | "liters" => "litre".to_owned(),
        "minuto" | "minutos" | "min" | "mins" => "minute".to_owned(),
        "noche" | "noches" => "night".to_owned(),
        _ => stem(word),
    }
}

fn is_adverb(word: &str) -> bool {
    matches!(word, "daily" | "weekly" | "monthly" | "yearly" | "annually" | "hourly")
}

/// Returns how many of the smaller units the larger one has, if that number is always the same: a year has 12 months.
pub(super) fn factor(larger: &str, smaller: &str) -> Option<u32> {
    match (larger, smaller) {
        _ if larger == smaller => Some(1),
        ("year", "month") => Some(12),
        ("year", "week") => Some(52),
        ("year", "day") => Some(365),
        ("year", "quarter") => Some(4),
        ("quarter", "month") => Some(3),
        ("week", "day" | "night") => Some(7),
        ("hour", "minute") | ("minute", "second") => Some(60),
        _ => None,
    }
}

fn with_factor(expression: String, factor: u32) -> String {
    if factor == 1 { expression } else { format!("{expression}*{factor}") }
}

fn number(word: &str) -> Option<String> {
    if is_number(word) { Some(word.to_owned()) } else { spelled(word).map(str::to_owned) }
}

fn is_unit(word: &str) -> bool {
    word.starts_with(char::is_alphabetic)
        && !NOT_UNITS.contains(&word)
        && !FILLERS.contains(&word)
        && !PRONOUNS.contains(&word)
        && number(word).is_none()
}

/// Returns the quantities of a text, and the period that a question names without a number: "in a year", "the weekly pay".
fn quantities(tokens: &[String]) -> (Vec<Quantity>, Option<String>) {
    let word = |at: usize| tokens.get(at).map_or("", String::as_str);
    let (mut found, mut period, mut at) = (Vec::new(), None, 0);
    while at < tokens.len() {
        let is_article = matches!(word(at), "a" | "an" | "per" | "one" | "whole" | "each" | "every" | "al" | "un");
        if is_adverb(word(at)) || is_article && is_period(word(at + 1)) {
            period = Some(unit_of(word(if is_adverb(word(at)) { at } else { at + 1 })));
        }
        let Some(value) = number(word(at)).filter(|_| word(at + 1) != "percent") else {
            at += 1;
            continue;
        };
        at += 1;
        let mut unit = String::new();
        if is_unit(word(at)) && !is_adverb(word(at)) {
            unit = unit_of(word(at));
            at += 1;
        }
        let per = match word(at) {
            per if PER.contains(&per) && is_unit(word(at + 1)) => {
                at += 2;
                Some(unit_of(word(at - 1)))
            }
            adverb if is_adverb(adverb) => {
                at += 1;
                Some(unit_of(adverb))
            }
            _ => None,
        };
        found.push(Quantity { value, unit, per });
    }
    (found, period)
}

pub(super) fn is_period(word: &str) -> bool {
    matches!(&*unit_of(word), "day" | "week" | "month" | "quarter" | "year" | "hour" | "night" | "minute")
}

/// Whether the part of a message that asks consists of words for amounts and prices: "how many hours is that weekly".
fn asks(tokens: &[String], units: &[&str]) -> bool {
    let is_interrogative =
        |token: &String| matches!(&**token, "how" | "what" | "whats" | "cuanto" | "cuantos" | "cuantas" | "so");
    let start = tokens.iter().rposition(is_interrogative);
    let continues = matches!(tokens.first().map(String::as_str), Some("and" | "y"));
    let known = |token: &String| {
        let word = token.as_str();
        ASKING.contains(&word)
            || FILLERS.contains(&word)
            || PRONOUNS.contains(&word)
            || number(word).is_some()
            || units.contains(&&*unit_of(word))
            || ordinal(word, 1).is_some()
            || is_period(word)
            || word == ","
    };
    (start.is_some() || continues) && tokens[start.unwrap_or(0)..].iter().all(known)
}

/// Returns the calculation for a question about amounts and rates of the message, or of what was said last.
pub(super) fn calculated(text: &str, earlier: &[ChatMessage], known: &[Calculation]) -> Option<String> {
    let all = tokens(&pricing::with_currencies(text));
    let (own, period) = quantities(&all);
    let (rates, amounts): (Vec<Quantity>, Vec<Quantity>) = own.into_iter().partition(|quantity| quantity.per.is_some());
    let has_condition =
        all.iter().any(|token| CONDITIONS.contains(&token.as_str()) || EXCEPTIONS.contains(&token.as_str()));
    if has_condition || amounts.iter().any(|amount| amount.unit.is_empty()) {
        return None;
    }
    let units: Vec<&str> = rates
        .iter()
        .chain(&amounts)
        .flat_map(|quantity| [Some(quantity.unit.as_str()), quantity.per.as_deref()])
        .flatten()
        .filter(|unit| !unit.is_empty())
        .collect();
    if !asks(&all, &units) {
        return None;
    }
    let many = all.windows(2).find(|pair| pair[0] == "many").map(|pair| unit_of(&pair[1]));
    match (&rates[..], &amounts[..]) {
        ([], [_, _, ..]) => ratio(&all, &amounts, many.as_deref()),
        ([one, other], []) => chain(one, other, period.as_deref()),
        ([rate], [amount]) => applied(rate, amount, many.as_deref()),
        ([rate], []) => {
            let counted = || {
                // "How many hours is that?" has a result in hours.
                let last = known.last()?;
                let asked = tokens(&last.asked);
                let counts = asked.windows(2).any(|pair| pair[0] == "many" && Some(unit_of(&pair[1])) == rate.per);
                let result = last_answered(earlier, known).filter(|_| counts)?;
                Some(format!("{result}*{}", rate.value))
            };
            // "65 a filling, what's that for both?"
            let of_both = || {
                let is_both = all.last().is_some_and(|word| matches!(&**word, "both" | "two"));
                is_both.then(|| format!("{}*2", rate.value))
            };
            over(rate, period.as_deref()).or_else(of_both).or_else(counted)
        }
        ([], _) => {
            let rate = said_rate(&all, earlier)?;
            match &amounts[..] {
                [amount] => applied(&rate, amount, many.as_deref()),
                _ => over(&rate, period.as_deref()),
            }
        }
        _ => None,
    }
}

/// Returns the product of two rates: "7.5 hours a day, 4 days a week".
fn chain(one: &Quantity, other: &Quantity, period: Option<&str>) -> Option<String> {
    let (inner, outer) = match (one.per.as_deref(), other.per.as_deref()) {
        (Some(per), _) if per == other.unit => (one, other),
        (_, Some(per)) if per == one.unit => (other, one),
        _ => return None,
    };
    let per = outer.per.as_deref()?;
    let product = format!("{}*{}", inner.value, outer.value);
    Some(with_factor(product, factor(period.unwrap_or(per), per)?))
}

/// Returns the product of a rate and an amount, or for "how many days", their quotient.
fn applied(rate: &Quantity, amount: &Quantity, many: Option<&str>) -> Option<String> {
    let per = rate.per.as_deref()?;
    if many == Some(per) && !rate.unit.is_empty() && rate.unit == amount.unit {
        return Some(format!("{}/{}", amount.value, rate.value));
    }
    if many.is_some_and(|many| many != rate.unit) {
        return None;
    }
    Some(with_factor(format!("{}*{}", rate.value, amount.value), factor(&amount.unit, per)?))
}

/// Returns the amount of a rate in a longer period.
fn over(rate: &Quantity, period: Option<&str>) -> Option<String> {
    let factor = factor(period?, rate.per.as_deref()?).filter(|factor| *factor > 1)?;
    Some(with_factor(rate.value.clone(), factor))
}

/// Returns the quotient of two amounts: "412 km on 31 litres. How many litres per 100 km is that?"
fn ratio(tokens: &[String], amounts: &[Quantity], many: Option<&str>) -> Option<String> {
    let at = tokens.iter().position(|token| matches!(&**token, "per" | "each" | "every" | "por" | "cada"))?;
    let count = tokens.get(at + 1).and_then(|word| number(word));
    let per = unit_of(tokens.get(at + 1 + usize::from(count.is_some()))?);
    let stated = &amounts[..amounts.len() - usize::from(count.is_some())];
    let [one, other] = stated else { return None };
    let (whole, part) = match (one.unit == per, other.unit == per) {
        (true, false) => (one, other),
        (false, true) => (other, one),
        _ => return None,
    };
    let quotient = format!("{}/{}", part.value, whole.value);
    (many.is_none_or(|many| many == part.unit))
        .then(|| count.map_or_else(|| quotient.clone(), |count| format!("{quotient}*{count}")))
}

/// Returns the rate that the last answer quoted or the user stated last. An ordinal picks one of several.
fn said_rate(tokens: &[String], earlier: &[ChatMessage]) -> Option<Quantity> {
    let newest = |role: Role| {
        let messages = earlier.iter().rev().filter(move |message| message.role == role);
        messages.map(ChatMessage::plain_text).find(|text| !text.is_empty())
    };
    let (reply, said) = (newest(Role::Assistant).unwrap_or_default(), newest(Role::User).unwrap_or_default());
    let rates = |text: &str| -> Vec<Quantity> {
        let (found, _) = quantities(&self::tokens(&pricing::with_currencies(text)));
        found.into_iter().filter(|quantity| quantity.per.is_some()).collect()
    };
    let quoted = rates(&quoted_texts(&reply));
    let mut known = if quoted.is_empty() { rates(&said) } else { quoted };
    if known.is_empty() {
        // The statement before the last question
        let messages = earlier.iter().rev().filter(|message| message.role == Role::User).skip(1);
        known = messages.map(|message| rates(&message.plain_text())).find(|rates| !rates.is_empty())?;
    }
    let picked = |tokens: &[String]| tokens.iter().find_map(|word| ordinal(word, known.len()));
    match &known[..] {
        [only] => Some(only.clone()),
        all => all.get(picked(tokens).or_else(|| picked(&self::tokens(&said)))?).cloned(),
    }
}

/// Returns the changed amount for "it goes up 3% in January, what will I pay a month then?"
pub(super) fn changed(text: &str, earlier: &[ChatMessage], last: Option<&str>) -> Option<String> {
    const UP: [&str; 12] = [
        "up",
        "rises",
        "rise",
        "increases",
        "increase",
        "raised",
        "raise",
        "rose",
        "grows",
        "sube",
        "suben",
        "increased",
    ];
    const DOWN: [&str; 11] =
        ["down", "drops", "drop", "falls", "fall", "reduced", "decreases", "fell", "baja", "bajan", "shrinks"];
    let all = tokens(text);
    let has = |known: &[&str]| all.iter().any(|token| known.contains(&token.as_str()));
    let percents: Vec<&String> = all.windows(2).filter(|pair| pair[1] == "percent").map(|pair| &pair[0]).collect();
    // "The price went from 64 to 80, how many percent up is that?"
    let asks_share =
        (0..all.len()).any(|at| matches!(&*all[at], "percent" | "percentage") && (at == 0 || !is_number(&all[at - 1])));
    let from_to = all.windows(4).find(|four| four[0] == "from" && four[2] == "to").map(|four| (&four[1], &four[3]));
    if let (true, Some((one, other)), [_, _]) =
        (asks_share && has(&["how", "what", "whats"]), from_to, &plain_numbers(text)[..])
    {
        let (before, after) = (one.parse::<f64>().ok()?, other.parse::<f64>().ok()?);
        let change = if after >= before { format!("{other}-{one}") } else { format!("{one}-{other}") };
        return Some(format!("({change})/{one}*100"));
    }
    let [percent] = percents[..] else { return None };
    let (_, period) = quantities(&all);
    let asks = has(&["what", "whats", "how", "cuanto"])
        && (has(&["be", "pay", "paying", "cost", "then", "much", "new"]) || period.is_some());
    let sign = match (has(&UP), has(&DOWN)) {
        (true, false) => '+',
        (false, true) => '-',
        _ => return None,
    };
    let whole = match &plain_numbers(text)[..] {
        [own] => own.clone(),
        [] => match said_rate(&all, earlier) {
            Some(rate) if rate.per == period && period.is_some() => rate.value,
            _ => last.filter(|_| period.is_none())?.to_owned(),
        },
        _ => return None,
    };
    asks.then(|| format!("{whole}*(1{sign}{percent}/100)"))
}

/// Returns the amount for another number of people: "pancakes for 4: 350 g flour, 2 eggs" – "how much flour if we are 6?"
pub(super) fn scaled(text: &str, earlier: &[ChatMessage]) -> Option<String> {
    let all = tokens(text);
    let word = |at: usize| all.get(at).map_or("", String::as_str);
    let how = (0..all.len()).find(|at| word(*at) == "how" && matches!(word(at + 1), "much" | "many"))?;
    let noun = stem(word(how + 2));
    let [count] = &plain_numbers(text)[..] else { return None };
    let at = all.iter().position(|token| token == count)?;
    let is_count = matches!(word(at.checked_sub(1)?), "for" | "are" | "were" | "be" | "serve" | "feed" | "makes");
    let asks =
        is_count && all.len() <= MAX_SCALED_WORDS && !all.iter().any(|token| EXCEPTIONS.contains(&token.as_str()));
    let messages = earlier.iter().rev().filter(|message| message.role == Role::User && asks);
    messages.map(ChatMessage::plain_text).find_map(|said| {
        let (head, list) = said.split_once(':')?;
        let ([servings], head) = (&plain_numbers(head)[..], tokens(head)) else { return None };
        let serves = head
            .windows(2)
            .any(|pair| matches!(&*pair[0], "for" | "serves" | "feeds" | "makes" | "para") && pair[1] == *servings);
        let part = list.split([',', ';', '\n']).find(|part| tokens(part).iter().any(|token| stem(token) == noun))?;
        let [amount] = &plain_numbers(part)[..] else { return None };
        serves.then(|| format!("{amount}/{servings}*{count}"))
    })
}

/// The maximum number of words in a question for a scaled amount.
const MAX_SCALED_WORDS: usize = 14;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_and_rates_are_multiplied() {
        let statement =
            |text: &str| vec![ChatMessage::text(Role::User, text), ChatMessage::text(Role::Assistant, "Noted.")];
        let gym = statement("The gym is 35 a month.");
        let rooms = statement("Casa Luz at 80 a night, Casa Mar at 65 a night");
        for (earlier, text, expected) in [
            (&[][..], "40 litres at 1.70 a litre, what did I pay?", Some("1.70*40")),
            (&[], "8 hours a day, 5 days a week, how many hours is that weekly", Some("8*5")),
            (&[], "8 hours a day, 5 days a week, how many hours is that a year?", Some("8*5*52")),
            (&[], "im saving 200 a month, how much is that after 18 months", Some("200*18")),
            (&[], "I save 200 a month. How much is that in 2 years?", Some("200*2*12")),
            (&[], "I have 30 pills and take 2 pills a day, how many days is that", Some("30/2")),
            (&[], "I drove 500 km on 40 litres. How many litres per 100 km is that?", Some("40/500*100")),
            (&[], "they want 65 a filling, whats that for both", Some("65*2")),
            (&[], "3 kg for 12 euros, how much is that per kg?", Some("12/3")),
            (&[], "gym is 34.99 a month, so a year is?", Some("34.99*12")),
            (&gym, "how much does that make in a year", Some("35*12")),
            (&gym, "what do I pay a month?", None),
            (&gym, "what do I pay for the pool in a year?", None),
            (&gym, "how much is that in a year without tax", None),
            (&rooms, "and the second one for 4 nights?", Some("65*4")),
            (&rooms, "what would 4 nights there be", None),
            (&[], "I sleep 8 hours a night, who called 3 times?", None),
            (&[], "how many hours are in 3 days", None),
        ] {
            assert_eq!(calculated(text, earlier, &[]).as_deref(), expected, "{text}");
        }
        assert_eq!(
            changed("it goes up 5% in May, what will I pay a month then?", &gym, None).as_deref(),
            Some("35*(1+5/100)")
        );
        assert_eq!(
            changed("price went from 50 to 60, how many percent up is that", &[], None).as_deref(),
            Some("(60-50)/50*100")
        );
        assert_eq!(changed("it goes up 5%, what will that be?", &gym, Some("70")).as_deref(), Some("70*(1+5/100)"));
    }

    #[test]
    fn recipes_are_scaled() {
        let said = [ChatMessage::text(Role::User, "Waffles for 4: 300 g flour, 2 eggs, 200 ml milk")];
        assert_eq!(scaled("how much flour if we're 6?", &said).as_deref(), Some("300/4*6"));
        assert_eq!(scaled("and how many eggs for 8", &said).as_deref(), Some("2/4*8"));
        assert_eq!(scaled("how much sugar for 6?", &said), None);
    }
}
