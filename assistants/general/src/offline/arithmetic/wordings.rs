//! Calculations that a message states in full: an amount at a price, a price with a discount, an area, the change for a payment.

use threadkeep::dialogue::is_question;
use threadkeep::{ChatMessage, Role};

use super::super::results::Calculation;
use super::followups::{LESS, MORE};
use super::numbers::{is_number, plain_numbers, spelled, tokens};
use super::pricing::with_currencies;
use super::quantities::{factor, is_period, rates, unit_of};
use super::steps::stem;

/// Words that ask for an amount of money.
const ASKING: [&str; 21] = [
    "what",
    "whats",
    "how",
    "price",
    "total",
    "pay",
    "paying",
    "altogether",
    "cuanto",
    "cuanta",
    "sale",
    "queda",
    "precio",
    "final",
    "cost",
    "costs",
    "cuesta",
    "pago",
    "pagar",
    "sum",
    "comes",
];
/// Words of conditions that such a calculation would ignore.
const CONDITIONS: [&str; 26] = [
    "save", "saving", "saved", "ahorro", "if", "unless", "each", "per", "without", "except", "not", "but", "half",
    "twice", "double", "first", "second", "only", "si", "sin", "salvo", "cada", "minus", "plus", "deposit", "left",
];

/// Returns the calculation that a message states in full.
pub(super) fn stated(text: &str, earlier: &[ChatMessage], last: Option<&str>, known: &[Calculation]) -> Option<String> {
    let all = tokens(&with_currencies(text));
    with_share(text, &all)
        .or_else(|| amount_at_price(text, &all))
        .or_else(|| area(text, &all))
        .or_else(|| change(text, &all, last))
        .or_else(|| several(text, &all, last))
        .or_else(|| gone_up(text, &all, last))
        .or_else(|| from_earlier(text, &all, known))
        .or_else(|| coverage(text, &all, last))
        .or_else(|| per_period(&all, last, known))
        .or_else(|| over_periods(text, &all, earlier))
}

fn has(all: &[String], known: &[&str]) -> bool {
    all.iter().any(|token| known.contains(&token.as_str()))
}

/// Returns the price in "the jacket is 149 with 30% off, what do I end up paying?"
fn with_share(text: &str, all: &[String]) -> Option<String> {
    let [amount] = &plain_numbers(text)[..] else { return None };
    let shares: Vec<usize> = (1..all.len()).filter(|at| all[*at] == "percent" && is_number(&all[at - 1])).collect();
    let [share] = shares[..] else { return None };
    let at = all.iter().position(|token| token == amount)?;
    let sign = match (has(all, &LESS), has(all, &MORE)) {
        (true, false) => '-',
        (false, true) => '+',
        _ => return None,
    };
    // "Dinner was 90, what's a 12% tip on that?" asks for the tip.
    let is_introduced = sign == '-'
        || (share.saturating_sub(3)..share)
            .any(|before| matches!(&*all[before], "with" | "con" | "plus" | "including" | "after" | "mas"));
    let includes = has(all, &["includes", "included", "including", "incl", "of", "incluido"]);
    // "20% of 90" is another calculation, and "is 30% off 149 much?" another question.
    let asks = has(all, &ASKING) && (text.contains('?') || has(all, &["what", "whats", "how", "cuanto"]));
    (asks && is_introduced && !includes && at < share && !has(all, &CONDITIONS))
        .then(|| format!("{amount}*(1{sign}{}/100)", all[share - 1]))
}

/// Returns the product in "hotel: 3 nights at 88 each, total?" and "47 litros a 1,62 el litro, cuánto sale".
fn amount_at_price(text: &str, all: &[String]) -> Option<String> {
    const TAIL: [&str; 47] = [
        ",",
        "each",
        "apiece",
        "euros",
        "euro",
        "eur",
        "dollars",
        "pounds",
        "quid",
        "cents",
        "how",
        "much",
        "is",
        "that",
        "what",
        "whats",
        "it",
        "total",
        "altogether",
        "in",
        "all",
        "together",
        "do",
        "i",
        "we",
        "pay",
        "does",
        "cost",
        "come",
        "to",
        "the",
        "sum",
        "so",
        "please",
        "pls",
        "cada",
        "uno",
        "una",
        "cuanto",
        "sale",
        "es",
        "son",
        "cuesta",
        "en",
        "pago",
        "por",
        "will",
    ];
    let [count, price] = &plain_numbers(text)[..] else { return None };
    let word = |at: usize| all.get(at).map_or("", String::as_str);
    let first = all.iter().position(|token| token == count)?;
    let second = (first + 1..all.len()).find(|at| all[*at] == *price)?;
    let preposition = word(second - 1);
    let is_rate = matches!(preposition, "at" | "a" | "por") && (2..=MAX_UNIT_WORDS + 2).contains(&(second - first));
    // "A litre", "each", "el kilo"
    let is_per =
        matches!(word(second + 1), "a" | "an" | "per" | "the" | "el" | "la" | "por") && !word(second + 2).is_empty();
    let tail = second + if is_per { 3 } else { 1 };
    let is_plain = (tail..all.len()).all(|at| TAIL.contains(&word(at)));
    let is_spanish = has(all, &["cuanto", "sale", "cuesta", "es"]);
    let asks = has(&all[second..], &["how", "what", "whats", "total", "altogether", "cuanto", "sum"]);
    let is_time = all[..first].iter().any(|token| matches!(&**token, "at" | "las" | "from" | "room" | "flat"));
    let is_product = is_rate && (preposition != "a" || is_spanish) && !is_time;
    (is_product && is_plain && asks).then(|| format!("{count}*{price}"))
}

/// The maximum number of words that name what is bought: "bottles of wine".
const MAX_UNIT_WORDS: usize = 3;

/// Returns the product in "the wall is 4.2 by 2.6 m, what's the area?"
fn area(text: &str, all: &[String]) -> Option<String> {
    let [one, other] = &plain_numbers(text)[..] else { return None };
    let at = all.iter().position(|token| token == one)?;
    let between = all[at + 1..].iter().take(3).position(|token| matches!(&**token, "by" | "x" | "por"))?;
    let is_next = all.get(at + 2 + between) == Some(other);
    let asks = has(all, &["area", "square", "superficie", "cuadrados", "surface", "sqm", "m2"]);
    (is_next && asks && has(all, &["what", "whats", "how", "cuanto", "cual", "que"])).then(|| format!("{one}*{other}"))
}

/// Returns the change in "if I pay with 100, what do I get back?"
fn change(text: &str, all: &[String], last: Option<&str>) -> Option<String> {
    let pays = all.windows(2).any(|pair| {
        matches!(&*pair[0], "pay" | "paying" | "paid" | "pago" | "pagamos" | "pagar")
            && matches!(&*pair[1], "with" | "con")
    });
    let gives = has(all, &["give", "hand", "gave", "doy"]);
    let asks = has(all, &["change", "back", "devuelven", "devuelve", "vuelta", "vueltas", "cambio"]);
    let [paid] = &plain_numbers(text)[..] else { return None };
    let is_more = paid.parse::<f64>().ok()? > last?.parse::<f64>().ok()?;
    ((pays || gives) && asks && is_more).then(|| format!("{paid}-{}", last.unwrap_or_default()))
}

/// Returns the product in "I've got four of those walls, so altogether?"
fn several(text: &str, all: &[String], last: Option<&str>) -> Option<String> {
    let at = all.windows(2).position(|pair| pair[0] == "of" && matches!(&*pair[1], "those" | "these" | "them"))?;
    let count = all.get(at.checked_sub(1)?)?;
    let count = if is_number(count) { count } else { spelled(count)? };
    let asks = has(all, &["altogether", "total", "together", "cost", "much"]) || text.trim_end().ends_with('?');
    let others = plain_numbers(text).iter().filter(|number| *number != count).count();
    let has_condition =
        has(all, &["if", "without", "minus", "plus", "off", "percent", "which", "who", "when", "where"]);
    (asks && others == 0 && !has_condition).then(|| Some(format!("{count}*{}", last?))).flatten()
}

/// Returns the changed result in "and if it goes up 3%?"
fn gone_up(text: &str, all: &[String], last: Option<&str>) -> Option<String> {
    const WORDS: [&str; 24] = [
        "and", "if", "it", "that", "they", "this", "goes", "go", "went", "rises", "rose", "by", "percent", "then",
        "what", "up", "down", "drops", "falls", "so", "sube", "baja", "un", "si",
    ];
    let is_known = |token: &String| WORDS.contains(&token.as_str()) || is_number(token);
    let at = all.iter().position(|token| token == "percent")?.checked_sub(1)?;
    let sign = match (has(all, &["up", "rises", "rose", "sube"]), has(all, &["down", "drops", "falls", "baja"])) {
        (true, false) => '+',
        (false, true) => '-',
        _ => return None,
    };
    let is_all = is_number(&all[at]) && all.iter().all(is_known) && plain_numbers(text).is_empty();
    (is_all && has(all, &["if", "si"])).then(|| Some(format!("{}*(1{sign}{}/100)", last?, all[at]))).flatten()
}

/// Returns the calculation in "back to the 93, minus 15" after a result of 93.
fn from_earlier(text: &str, all: &[String], known: &[Calculation]) -> Option<String> {
    let [whole, by] = &plain_numbers(text)[..] else { return None };
    let returns = all.windows(2).any(|pair| pair[0] == "back" && pair[1] == "to") || has(all, &["vuelve", "volvemos"]);
    let is_known =
        known.iter().any(|calculation| calculation.result == *whole || calculation.expression.contains(whole.as_str()));
    let at = all.iter().position(|token| token == whole)?;
    let end = (at + 1..all.len()).find(|end| all[*end] == *by)?;
    let is_share = all.get(end + 1).is_some_and(|next| next == "percent");
    let sign = all[at + 1..end].iter().find_map(|word| match word.as_str() {
        "minus" | "less" | "menos" | "take" | "off" => Some('-'),
        "plus" | "add" | "mas" | "suma" => Some('+'),
        "times" | "por" => Some('*'),
        "divided" | "split" | "entre" => Some('/'),
        _ => None,
    })?;
    (returns && is_known && !is_share && end + 1 == all.len()).then(|| format!("{whole}{sign}{by}"))
}

/// Returns the quotient in "1 litre of paint does 9 square metres, how many litres is that?" after an amount.
fn coverage(text: &str, all: &[String], last: Option<&str>) -> Option<String> {
    let [one, amount] = &plain_numbers(text)[..] else { return None };
    let at = all.iter().position(|token| token == one).filter(|_| one == "1")?;
    let unit = all.get(at + 1)?.trim_end_matches('s');
    let covers = has(all, &["does", "covers", "cover", "lasts", "makes", "feeds", "serves", "cubre"]);
    let many = all.windows(2).any(|pair| pair[0] == "many" && pair[1].trim_end_matches('s') == unit);
    let points = has(all, &["that", "it", "all"]);
    (covers && many && points).then(|| Some(format!("{}/{amount}", last?))).flatten()
}

/// Returns the quotient in "and per week?" after an amount for a year.
fn per_period(all: &[String], last: Option<&str>, known: &[Calculation]) -> Option<String> {
    const WORDS: [&str; 22] = [
        "and", "so", "what", "whats", "is", "that", "it", "how", "much", "just", "use", "then", "per", "a", "each",
        "y", "al", "por", "a", "make", "does", "in",
    ];
    let at = (1..all.len()).find(|at| {
        is_period(&all[*at]) && matches!(&*all[at - 1], "per" | "each" | "a" | "al" | "por") && !is_number(&all[*at])
    })?;
    let period = unit_of(&all[at]);
    let asked = tokens(&known.last()?.asked);
    let larger = asked.iter().filter(|word| is_period(word)).map(|word| unit_of(word));
    let factor = larger.filter_map(|larger| factor(&larger, &period)).max().filter(|factor| *factor > 1)?;
    let is_known = |token: &String| {
        WORDS.contains(&token.as_str()) || unit_of(token) == period || *token == factor.to_string() || token == ","
    };
    all.iter().all(is_known).then(|| Some(format!("{}/{factor}", last?))).flatten()
}

/// Returns the product in "what do I pay in rent over 12 months" after a statement of the rent for a month.
fn over_periods(text: &str, all: &[String], earlier: &[ChatMessage]) -> Option<String> {
    const WORDS: [&str; 27] = [
        "what", "whats", "how", "much", "do", "does", "did", "will", "i", "we", "pay", "spend", "cost", "costs", "is",
        "the", "my", "our", "in", "on", "for", "over", "that", "make", "and", "so", "total",
    ];
    let [count] = &plain_numbers(text)[..] else { return None };
    let at = all.iter().position(|token| token == count)?;
    let period = all.get(at + 1).filter(|word| is_period(word)).map(|word| unit_of(word))?;
    let is_named = |word: &&String| !WORDS.contains(&word.as_str()) && *word != count && unit_of(word) != period;
    let named: Vec<String> = all.iter().filter(is_named).map(|word| stem(word)).collect();
    let asks = all.iter().take(2).any(|word| matches!(&**word, "what" | "whats" | "how"));
    if named.is_empty() || named.len() > MAX_UNIT_WORDS || !asks {
        return None;
    }
    let said = earlier.iter().rev().filter(|message| message.role == Role::User).map(ChatMessage::plain_text);
    let statement = said.filter(|said| !is_question(said)).find(|said| {
        let own: Vec<String> = tokens(said).iter().map(|word| stem(word)).collect();
        named.iter().all(|name| own.contains(name))
    })?;
    let [(amount, per)] = &rates(&statement)[..] else { return None };
    let factor = factor(&period, per)?;
    Some(if factor == 1 { format!("{amount}*{count}") } else { format!("{amount}*{count}*{factor}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_converted_between_periods() {
        let asked = "Rent is 1150 a month, what does that make in a year".to_owned();
        let known = [Calculation { asked, expression: "1150*12".to_owned(), result: "13800".to_owned() }];
        let stated = |text: &str| stated(text, &[], Some("13800"), &known);
        assert_eq!(stated("per week? just use 52 weeks").as_deref(), Some("13800/52"));
        assert_eq!(stated("and per person?"), None);
        let earlier = [ChatMessage::text(Role::User, "my rent is 980 a month")];
        let over = |text: &str| over_periods(text, &tokens(text), &earlier);
        assert_eq!(over("what do I pay in rent over 12 months").as_deref(), Some("980*12"));
        assert_eq!(over("what do I pay for water over 12 months"), None);
    }

    #[test]
    fn calculations_are_stated_in_full() {
        let known = [Calculation { asked: String::new(), expression: "186/2".to_owned(), result: "93".to_owned() }];
        for (text, expected) in [
            ("jacket is 149 with 30% off, what do i end up paying", Some("149*(1-30/100)")),
            ("boots are 129 with 30% off. price?", Some("129*(1-30/100)")),
            ("the boots are 129 with 30% off", None),
            ("dinner came to 186.40, whats a 12% tip on that", None),
            ("the boots are 129 with 30% off, how much do I save?", None),
            ("the boots are 129 with 30% off if I join, what do I pay?", None),
            ("hotel: 3 nights at 88 each, total?", Some("3*88")),
            ("he echado 47 litros a 1,62 el litro, cuánto sale", Some("47*1.62")),
            ("dinner for 6 at 19.30, how much is the deposit?", None),
            ("3 nights at 88 each", None),
            ("wall is 4.2 by 2.6 m, whats the area", Some("4.2*2.6")),
            ("ive got four of those walls, so altogether?", Some("4*60")),
            ("four of them came yesterday", None),
            ("si pago con 100 que me devuelven", Some("100-60")),
            ("if I pay with 20 do I get change back", None),
            ("and if it goes up 3%?", Some("60*(1+3/100)")),
            ("back to the 93, minus 15", Some("93-15")),
            ("back to the 94, minus 15", None),
            ("1 litre of paint does 9 square metres, how many litres is that for all", Some("60/9")),
        ] {
            assert_eq!(stated(text, &[], Some("60"), &known).as_deref(), expected, "{text}");
        }
    }
}
