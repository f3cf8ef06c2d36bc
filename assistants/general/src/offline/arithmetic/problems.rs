//! Word problems: several amounts with what happens to them, and questions that change one of them. "3 nights at 84 a night plus 45 for
//! cleaning, total?", "make that 5 nights", "how much more than the 3 nights?"

use threadkeep::dialogue::is_question;
use threadkeep::{ChatMessage, Role};

use super::super::results::Calculation;
use super::numbers::{is_number, plain_numbers, spelled, tokens};
use super::pricing::{MONEY, with_currencies};
use super::quantities::{is_period, unit_of};
use super::steps::stem;

/// The maximum number of words in a problem.
const MAX_WORDS: usize = 30;
/// The maximum number of words between a count and the amount of each.
const MAX_UNIT_WORDS: usize = 4;

/// Words that ask for a result.
const ASKING: [&str; 17] = [
    "what",
    "whats",
    "how",
    "total",
    "left",
    "altogether",
    "makes",
    "make",
    "cuanto",
    "cuantos",
    "cuanta",
    "cuantas",
    "sum",
    "queda",
    "quedan",
    "sale",
    "together",
];
/// Words of conditions that no operation stands for.
const CONDITIONS: [&str; 16] = [
    "if", "unless", "percent", "half", "twice", "double", "average", "except", "without", "or", "si", "sin", "salvo",
    "not", "but", "from",
];

fn has(all: &[String], known: &[&str]) -> bool {
    all.iter().any(|token| known.contains(&token.as_str()))
}

fn number(word: &str) -> Option<String> {
    if is_number(word) { Some(word.to_owned()) } else { spelled(word).map(str::to_owned) }
}

/// Returns the calculation of a problem, or of a question about the last one.
pub(super) fn solved(text: &str, earlier: &[ChatMessage], last: Option<&str>, known: &[Calculation]) -> Option<String> {
    let all = tokens(&with_currencies(text));
    if all.is_empty() || all.len() > MAX_WORDS {
        return None;
    }
    stated(&all)
        .or_else(|| divided(&all))
        .or_else(|| with_other_amount(&all, known))
        .or_else(|| without_person(text, &all, known))
        .or_else(|| share_alone(&all, known))
        .or_else(|| more_than(&all, last, known))
        .or_else(|| over(&all, last, known))
        .or_else(|| at_rate(&all, last, known))
        .or_else(|| named_amounts(text, &all, earlier))
}

/// Returns the calculation of "7 boxes of 24 minus 19 broken ones, how many left" and "37 km each way, 5 days a week, how many km a week".
fn stated(all: &[String]) -> Option<String> {
    let places: Vec<usize> = (0..all.len()).filter(|at| is_number(&all[*at])).collect();
    let (first, last) = (*places.first()?, *places.last()?);
    if places.len() < 2 || !has(all, &ASKING) || has(all, &CONDITIONS) {
        return None;
    }
    let both_ways =
        all.windows(2).any(|pair| pair[0] == "each" && pair[1] == "way" || pair[0] == "both" && pair[1] == "ways");
    let mut expression = all[first].clone();
    if both_ways {
        expression.push_str("*2");
    }
    let mut is_mixed = both_ways;
    for pair in places.windows(2) {
        let between = &all[pair[0] + 1..pair[1]];
        let says = |known: &[&str]| between.iter().any(|word| known.contains(&word.as_str()));
        let is_short = between.len() <= MAX_UNIT_WORDS;
        let before = between.last().map_or("", String::as_str);
        let follows_comma = between.iter().rposition(|word| word == ",").is_some();
        let sign = match () {
            () if says(&["plus", "mas", "another"]) => '+',
            () if says(&["minus", "less", "menos"]) => '-',
            () if is_short && !follows_comma && matches!(before, "at" | "of" | "times" | "x") => '*',
            () if both_ways && all.get(pair[1] + 1).is_some_and(|word| is_period(word)) => '*',
            () => return None,
        };
        is_mixed |= sign != '*' || places.len() > 2;
        expression.push(sign);
        expression.push_str(&all[pair[1]]);
    }
    // Words after the last amount ask, or name what it is for.
    let asks = has(&all[last..], &ASKING) || all.iter().take(2).any(|word| matches!(&**word, "what" | "whats" | "how"));
    (is_mixed && asks).then_some(expression)
}

/// Returns the quotient in "una cena de 94,50 entre 3, a cuánto sale".
fn divided(all: &[String]) -> Option<String> {
    let places: Vec<usize> = (0..all.len()).filter(|at| number(&all[*at]).is_some()).collect();
    let [whole, count] = places[..] else { return None };
    let divides = matches!(&*all[count - 1], "entre" | "between" | "among");
    let asks = has(all, &["cuanto", "much", "whats", "each", "cada"]);
    (divides && asks && is_number(&all[whole]) && !has(all, &CONDITIONS))
        .then(|| Some(format!("{}/{}", all[whole], number(&all[count])?)))
        .flatten()
}

/// Returns the last calculation with another count of the same things: "make that 5 nights", "what if only 9 are broken".
fn with_other_amount(all: &[String], known: &[Calculation]) -> Option<String> {
    const OPENINGS: [&str; 24] = [
        "make", "that", "it", "what", "if", "and", "only", "just", "so", "ok", "say", "were", "was", "is", "are",
        "there", "theres", "we", "had", "take", "y", "si", "with", "for",
    ];
    const AFTER: [&str; 10] = ["instead", "then", "are", "were", "is", "pls", "please", "now", "though", ","];
    let places: Vec<usize> = (0..all.len()).filter(|at| number(&all[*at]).is_some()).collect();
    let [at] = places[..] else { return None };
    let supposes = has(all, &["if", "si", "make", "only", "instead"]);
    let named: Vec<&str> = all[at + 1..].iter().map(String::as_str).filter(|word| !AFTER.contains(word)).collect();
    let [noun] = named[..] else { return None };
    let is_plain = all[..at].iter().all(|word| OPENINGS.contains(&word.as_str()));
    let is_other = noun == "percent" || MONEY.contains(&noun);
    let calculation = known.last().filter(|_| supposes && is_plain && !is_other)?;
    let asked = tokens(&calculation.asked);
    // "19 broken ones"
    let counts = |place: &usize| {
        is_number(&asked[*place])
            && asked[*place + 1..].iter().take(2).any(|word| stem(word) == stem(noun))
            && asked[*place] != all[at]
    };
    let old = (0..asked.len()).find(counts).map(|place| asked[place].clone())?;
    replaced(&calculation.expression, &old, &number(&all[at])?)
}

/// Returns an expression with one number replaced; `None` if it does not occur exactly once.
fn replaced(expression: &str, old: &str, new: &str) -> Option<String> {
    let is_part = |c: char| c.is_ascii_digit() || c == '.';
    let is_whole = |start: &usize| {
        !expression[..*start].ends_with(is_part) && !expression[*start + old.len()..].starts_with(is_part)
    };
    let places: Vec<usize> = expression.match_indices(old).map(|(start, _)| start).filter(is_whole).collect();
    let [start] = places[..] else { return None };
    Some(format!("{}{new}{}", &expression[..start], &expression[start + old.len()..]))
}

/// Returns the last share for one person fewer: "and if Leo doesn't pay?", "y si Julia no paga?"
fn without_person(text: &str, all: &[String], known: &[Calculation]) -> Option<String> {
    const WORDS: [&str; 16] =
        ["and", "hm", "what", "so", "but", "y", "pero", "if", "si", "ok", "then", "at", "all", "for", "us", "after"];
    const LEAVING: [&str; 22] = [
        "doesnt", "dont", "does", "not", "isnt", "is", "wont", "cant", "drops", "out", "pay", "paying", "come",
        "coming", "join", "joining", "leaves", "no", "paga", "viene", "falla", "cancels",
    ];
    let at = all.iter().position(|token| matches!(&**token, "if" | "si"))?;
    let name = all.get(at + 1)?;
    let is_name = text
        .split_whitespace()
        .any(|word| word.to_lowercase().starts_with(name.as_str()) && word.starts_with(char::is_uppercase))
        || matches!(&**name, "one" | "uno" | "he" | "she");
    let leaves = has(all, &["drops", "leaves", "cancels", "falla"])
        || has(all, &["doesnt", "isnt", "wont", "cant", "not", "no"])
            && has(all, &["pay", "paying", "come", "coming", "join", "joining", "paga", "viene"]);
    let rest = all.iter().enumerate().filter(|(index, _)| *index != at + 1);
    let is_all = rest.map(|(_, word)| word.as_str()).all(|word| WORDS.contains(&word) || LEAVING.contains(&word));
    let calculation = known.last().filter(|_| is_name || leaves)?;
    let (whole, count) = calculation.expression.rsplit_once('/')?;
    let count: u32 = count.trim().parse().ok()?;
    (leaves && is_all && count > 2).then(|| format!("{whole}/{}", count - 1))
}

/// Returns the amount of the share in the last result: "how much of it is just the VAT?"
fn share_alone(all: &[String], known: &[Calculation]) -> Option<String> {
    const SHARES: [&str; 9] = ["vat", "tax", "tip", "service", "discount", "iva", "propina", "descuento", "surcharge"];
    const WORDS: [&str; 24] = [
        "how", "much", "of", "it", "that", "is", "was", "just", "only", "the", "and", "so", "what", "whats", "alone",
        "part", "by", "itself", "cuanto", "es", "solo", "el", "la", "de",
    ];
    let is_all = all.iter().all(|word| WORDS.contains(&word.as_str()) || SHARES.contains(&word.as_str()));
    let asks = has(all, &["much", "what", "whats", "cuanto"])
        && has(all, &["just", "only", "alone", "part", "solo", "itself"]);
    let expression =
        known.last().filter(|_| is_all && asks && has(all, &SHARES)).map(|last| last.expression.as_str())?;
    if let Some((whole, share)) = expression.strip_suffix("/100)").and_then(|whole| whole.rsplit_once("*(1")) {
        let share = share.trim_start_matches(['+', '-']);
        return share.parse::<f64>().is_ok().then(|| format!("{whole}*{share}/100"));
    }
    let (whole, share) = expression.rsplit_once(['+', '-'])?;
    let share = share.trim().strip_suffix('%')?;
    share.parse::<f64>().is_ok().then(|| format!("{}*{share}/100", whole.trim()))
}

/// Returns the difference in "so how much more than the 3 nights" between the last result and the one asked for with these words.
fn more_than(all: &[String], last: Option<&str>, known: &[Calculation]) -> Option<String> {
    let than = all.iter().position(|token| token == "than")?;
    let asks =
        all[..than].iter().any(|word| matches!(&**word, "more" | "less" | "cheaper" | "dearer" | "mas" | "menos"))
            && has(&all[..than], &["how", "much", "cuanto", "what"]);
    let named: Vec<String> = all[than + 1..]
        .iter()
        .filter(|word| !matches!(&***word, "the" | "for" | "with" | "one"))
        .map(|word| stem(word))
        .collect();
    let names = |calculation: &&Calculation| {
        let asked: Vec<String> = tokens(&calculation.asked).iter().map(|word| stem(word)).collect();
        named.iter().all(|word| asked.contains(word))
    };
    let (_, before) = known.split_last()?;
    let other = before.iter().rev().find(names).filter(|_| asks && !named.is_empty())?;
    let (one, other) = (last?, other.result.as_str());
    let is_larger = one.parse::<f64>().ok()? >= other.parse::<f64>().ok()?;
    Some(if is_larger { format!("{one}-{other}") } else { format!("{other}-{one}") })
}

/// Returns the product in "over 46 weeks?" after an amount for a week.
fn over(all: &[String], last: Option<&str>, known: &[Calculation]) -> Option<String> {
    const WORDS: [&str; 19] = [
        "and", "so", "over", "in", "for", "what", "whats", "is", "that", "it", "how", "much", "then", "y", "en", "por",
        "make", "does", "a",
    ];
    let places: Vec<usize> = (0..all.len()).filter(|at| number(&all[*at]).is_some()).collect();
    let [at] = places[..] else { return None };
    let period = all.get(at + 1).filter(|word| is_period(word)).map(|word| unit_of(word))?;
    let is_all =
        all.iter().enumerate().all(|(index, word)| index == at || index == at + 1 || WORDS.contains(&word.as_str()));
    let introduces = at > 0 && matches!(&*all[at - 1], "over" | "in" | "for" | "en" | "por");
    let asked = tokens(&known.last()?.asked);
    let is_rate =
        asked.windows(2).any(|pair| matches!(&*pair[0], "a" | "per" | "each" | "every") && unit_of(&pair[1]) == period);
    (is_all && introduces && is_rate).then(|| Some(format!("{}*{}", last?, number(&all[at])?))).flatten()
}

/// Returns the product in "they pay 0.26 per km, so what do I get for all of it" after an amount in km.
fn at_rate(all: &[String], last: Option<&str>, known: &[Calculation]) -> Option<String> {
    let places: Vec<usize> = (0..all.len()).filter(|at| is_number(&all[*at])).collect();
    let [at] = places[..] else { return None };
    let skipped = at + 1 + usize::from(all.get(at + 1).is_some_and(|word| MONEY.contains(&word.as_str())));
    let is_per =
        all.get(skipped).is_some_and(|word| matches!(&**word, "per" | "a" | "an" | "each" | "el" | "por" | "la"));
    let unit = all.get(skipped + 1).filter(|_| is_per).map(|word| stem(word))?;
    let asks = has(all, &["what", "whats", "how", "cuanto"]);
    let points = all[skipped..].windows(2).any(|pair| pair[0] == "of" && matches!(&*pair[1], "it" | "that" | "them"))
        || has(&all[skipped..], &["that", "all", "todo", "eso"]);
    let is_unit =
        known.iter().rev().take(2).any(|calculation| tokens(&calculation.asked).iter().any(|word| stem(word) == unit));
    (asks && points && is_unit && !has(all, &CONDITIONS)).then(|| Some(format!("{}*{}", last?, all[at]))).flatten()
}

/// Returns the sum in "deposit plus the first two months rent makes?" of amounts that the user stated.
fn named_amounts(text: &str, all: &[String], earlier: &[ChatMessage]) -> Option<String> {
    const WORDS: [&str; 30] = [
        "what",
        "whats",
        "is",
        "the",
        "my",
        "our",
        "a",
        "makes",
        "make",
        "total",
        "how",
        "much",
        "together",
        "altogether",
        "so",
        "and",
        "in",
        "of",
        "first",
        "that",
        "come",
        "comes",
        "to",
        "would",
        "be",
        "do",
        "i",
        "pay",
        ",",
        "s",
    ];
    let asks = text.trim_end().ends_with('?') || has(all, &["what", "whats", "how"]);
    if !asks || !plain_numbers(text).is_empty() || !has(all, &["plus", "minus"]) || has(all, &CONDITIONS) {
        return None;
    }
    let said: Vec<String> = earlier
        .iter()
        .rev()
        .filter(|message| message.role == Role::User)
        .map(ChatMessage::plain_text)
        .filter(|said| !is_question(said))
        .collect();
    let amount = |noun: &str| -> Option<String> {
        said.iter().find_map(|said| {
            let clauses: Vec<&str> = said.split([',', ';', '.', '!']).flat_map(|part| part.split(" and ")).collect();
            clauses.into_iter().rev().find_map(|clause| {
                let names = tokens(clause).iter().any(|word| stem(word) == stem(noun));
                <[String; 1]>::try_from(plain_numbers(clause)).ok().filter(|_| names).map(|[amount]| amount)
            })
        })
    };
    let mut expression = String::new();
    let mut start = 0;
    for end in (0..=all.len()).filter(|at| all.get(*at).is_none_or(|word| matches!(&**word, "plus" | "minus"))) {
        let part = &all[start..end];
        let count = part.iter().find_map(|word| spelled(word));
        let is_noun = |word: &&String| {
            !WORDS.contains(&word.as_str()) && spelled(word).is_none() && !(count.is_some() && is_period(word))
        };
        let nouns: Vec<&String> = part.iter().filter(is_noun).collect();
        let [noun] = nouns[..] else { return None };
        expression.push_str(&amount(noun)?);
        if let Some(count) = count {
            expression.push_str(&format!("*{count}"));
        }
        if let Some(sign) = all.get(end) {
            expression.push(if sign == "plus" { '+' } else { '-' });
        }
        start = end + 1;
    }
    Some(expression)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(asked: &str, expression: &str, result: &str) -> Calculation {
        Calculation { asked: asked.to_owned(), expression: expression.to_owned(), result: result.to_owned() }
    }

    #[test]
    fn problems_are_solved() {
        let stated = |text: &str| solved(text, &[], None, &[]);
        for (text, expected) in [
            ("3 nights at 84 a night plus 45 for cleaning, total?", Some("3*84+45")),
            ("7 boxes of 24 minus 19 broken ones, how many left", Some("7*24-19")),
            ("I drive 37 km each way, 5 days a week. how many km a week is that", Some("37*2*5")),
            ("una cena de 94,50 entre 3, ¿a cuánto sale?", Some("94.50/3")),
            ("3 nights at 84 a night plus 45 for cleaning", None),
            ("3 nights at 84 plus 45 if we stay late, total?", None),
            ("room 12 has 3 beds, how many guests?", None),
        ] {
            assert_eq!(stated(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn questions_change_the_last_problem() {
        let nights = [
            step("3 nights at 84 a night plus 45 for cleaning, total?", "3*84+45", "297"),
            step("make that 5 nights", "5*84+45", "465"),
        ];
        let asked = |text: &str| solved(text, &[], Some("465"), &nights);
        assert_eq!(solved("make that 5 nights", &[], Some("297"), &nights[..1]).as_deref(), Some("5*84+45"));
        assert_eq!(asked("so how much more than the 3 nights").as_deref(), Some("465-297"));
        let boxes = [step("7 boxes of 24 minus 19 broken ones, how many left", "7*24-19", "149")];
        assert_eq!(solved("what if only 9 are broken", &[], Some("149"), &boxes).as_deref(), Some("7*24-9"));
        let dinner = [step("dinner came to 186.40, four of us, how much each", "186.40/4", "46.6")];
        assert_eq!(solved("hm and if Leo doesn't pay?", &[], Some("46.6"), &dinner).as_deref(), Some("186.40/3"));
        assert_eq!(solved("and if Leo pays 20?", &[], Some("46.6"), &dinner), None);
        let vat = [step("with 21 percent vat on top", "1055.12*(1+21/100)", "1276.6952")];
        let both = [step("with 21 percent vat", "(1199*(1-12/100)) + 21%", "1276.6952")];
        let expected = Some("(1199*(1-12/100))*21/100");
        assert_eq!(solved("how much of it is just the vat", &[], None, &both).as_deref(), expected);
        assert_eq!(solved("how much of it is just the vat", &[], None, &vat).as_deref(), Some("1055.12*21/100"));
        let km = [step("how many km a week is that", "37*2*5", "370")];
        assert_eq!(solved("over 46 weeks?", &[], Some("370"), &km).as_deref(), Some("370*46"));
        let paid = "they pay 0.26 per km, so what do I get for all of it";
        assert_eq!(solved(paid, &[], Some("17020"), &km).as_deref(), Some("17020*0.26"));
    }

    #[test]
    fn stated_amounts_are_added_by_name() {
        let earlier = [ChatMessage::text(Role::User, "the deposit for the flat was 950 and rents 720 a month")];
        let asked = |text: &str| solved(text, &earlier, None, &[]);
        assert_eq!(asked("deposit plus the first two months rent makes?").as_deref(), Some("950+720*2"));
        assert_eq!(asked("deposit plus the fee makes?"), None);
    }
}
