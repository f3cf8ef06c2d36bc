//! Calculations that apply a share to an amount, or an earlier calculation to another amount: "the sofa is 1499, how much with 20% off",
//! "same for the first one", "what if there are 6 of us instead?"

use threadkeep::{ChatMessage, Role};

use super::super::results::{Calculation, Reference, reference_at};
use super::FILLERS;
use super::corrections::last_expression;
use super::numbers::{PRONOUNS, is_number, plain_numbers, spelled, tokens};

/// Words of reductions and of additions.
pub(super) const LESS: [&str; 8] = ["off", "discount", "reduction", "cheaper", "less", "descuento", "rebaja", "menos"];
pub(super) const MORE: [&str; 10] =
    ["tip", "vat", "tax", "service", "surcharge", "propina", "iva", "recargo", "extra", "more"];

/// Returns an amount with a share taken off or added: "with 20% off", "and each with a 10% tip on top?"
pub(super) fn with_share(tokens: &[String], amount: &str, earlier: &[ChatMessage]) -> Option<String> {
    const AROUND: [&str; 27] = [
        "same",
        "but",
        "per",
        "person",
        "hm",
        "with",
        "after",
        "including",
        "incl",
        "con",
        "un",
        "una",
        "de",
        "on",
        "top",
        "encima",
        "each",
        "apiece",
        "that",
        "it",
        "to",
        "for",
        "do",
        "i",
        "we",
        "pay",
        "cada",
    ];
    let words: Vec<&str> =
        tokens.iter().map(String::as_str).filter(|word| !FILLERS.contains(word) && *word != ",").collect();
    let at = words.iter().position(|word| *word == "percent")?.checked_sub(1)?;
    let has = |known: &[&str]| words.iter().any(|word| known.contains(word));
    let introduces = has(&["with", "after", "including", "incl", "con"]) && is_number(words[at]);
    let sign = match (has(&LESS), has(&MORE)) {
        (true, false) => '-',
        (false, true) => '+',
        _ => return None,
    };
    // "Each of the 6" repeats the number of people of the last calculation.
    let is_same_count = |word: &str| {
        is_number(word) && last_expression(earlier).is_some_and(|last| last.ends_with(&format!("/{word}")))
    };
    let is_known = |at_word: (usize, &&str)| {
        let (index, word) = at_word;
        index == at
            || *word == "percent"
            || AROUND.contains(word)
            || LESS.contains(word)
            || MORE.contains(word)
            || matches!(*word, "uno" | "of" | "us" | "los" | "las" | "the")
            || is_same_count(word)
    };
    (introduces && words.iter().enumerate().all(is_known)).then(|| format!("{amount}*(1{sign}{}/100)", words[at]))
}

/// Returns the price of one thing in "6 tickets cost 81, so how much is one?"
pub(super) fn price_of_one(text: &str) -> Option<String> {
    let all = tokens(text);
    let [count, price] = &plain_numbers(text)[..] else { return None };
    let word = |at: usize| all.get(at).map_or("", String::as_str);
    let at = all.iter().position(|token| token == count)?;
    let priced = all.iter().position(|token| token == price).filter(|priced| *priced > at)?;
    let counts = word(at + 1).len() > 2 && word(at + 1).ends_with('s');
    let costs = all[at..priced].iter().any(|token| matches!(&**token, "cost" | "costs" | "were" | "for" | "cuestan"));
    let is_rate = matches!(word(priced + 1), "each" | "apiece" | "a" | "per");
    let asks = all[priced..].iter().any(|token| matches!(&**token, "how" | "what" | "whats" | "cuanto"));
    let of_one = all.last().is_some_and(|last| matches!(&**last, "one" | "each" | "apiece" | "uno" | "una"));
    (counts && costs && !is_rate && asks && of_one).then(|| format!("{price}/{count}"))
}

/// Returns the last calculation with another of the amounts that were stated together: "same for the first one".
pub(super) fn same_for(text: &str, earlier: &[ChatMessage]) -> Option<String> {
    let all = tokens(text);
    let words: Vec<&str> =
        all.iter().map(String::as_str).filter(|word| !FILLERS.contains(word) || *word == "the").collect();
    let start =
        words.iter().position(|word| *word == "same").filter(|at| words[..*at].iter().all(|it| *it == "the"))?;
    let ["for" | "with" | "to", rest @ ..] = &words[start + 1..] else { return None };
    let expression = last_expression(earlier)?;
    let end = expression.find(|c: char| !(c.is_ascii_digit() || c == '.')).filter(|end| *end > 0)?;
    let (amount, operation) = expression.split_at(end);
    let said = earlier.iter().rev().filter(|message| message.role == Role::User).map(ChatMessage::plain_text);
    let stated = said
        .map(|text| plain_numbers(&text))
        .find(|numbers| numbers.len() > 1 && numbers.iter().any(|number| number == amount))?;
    let other = match rest {
        [number] if is_number(number) => (*number).to_owned(),
        ["the", "other"] | ["the", "other", "one"] => match &stated[..] {
            [one, other] => if one == amount { other } else { one }.clone(),
            _ => return None,
        },
        _ => match reference_at(rest, 0, stated.len())? {
            (Reference::One(position), end, _) if end == rest.len() => stated.get(position)?.clone(),
            _ => return None,
        },
    };
    Some(format!("{other}{operation}"))
}

/// Returns the last calculation for another number of people, from the calculation that divided by their number: "what if there are 6 of us
/// instead, tip still in" after a share of the bill and the tip on it.
pub(super) fn other_count(text: &str, known: &[Calculation]) -> Option<String> {
    const WORDS: [&str; 31] = [
        "keep", "only", "just", "paying", "pay", "now", "tipping", "after", "all", "if", "theres", "there", "are",
        "were", "of", "us", "them", "people", "instead", "still", "in", "included", "same", "tip", "but", "we", "with",
        "on", "top", "propina", "si",
    ];
    let all = tokens(text);
    let words: Vec<&str> =
        all.iter().map(String::as_str).filter(|word| !FILLERS.contains(word) && *word != ",").collect();
    let number =
        |word: &&str| if is_number(word) { Some((*word).to_owned()) } else { spelled(word).map(str::to_owned) };
    let counts: Vec<String> = words.iter().filter_map(number).collect();
    let [count] = &counts[..] else { return None };
    let has = |known: &[&str]| words.iter().any(|word| known.contains(word));
    let is_all = words.iter().all(|word| WORDS.contains(word) || PRONOUNS.contains(word) || number(word).is_some());
    let supposes = has(&["if", "si", "only", "just", "now"])
        && has(&["us", "people", "them"])
        && has(&["instead", "still", "same", "keep", "paying"]);
    let [.., shared, last] = known else { return None };
    let (whole, divisor) = shared.expression.rsplit_once('/')?;
    // The last calculation continues the result, or repeats its expression.
    let repeated = last.expression.strip_prefix(&format!("({})", shared.expression));
    let operation =
        last.expression.strip_prefix(&shared.result).or(repeated.map(str::trim)).filter(|_| supposes && is_all)?;
    if let (Some(_), true) = (repeated, divisor.parse::<f64>().is_ok()) {
        return Some(format!("({whole}/{count}) {operation}"));
    }
    let is_plain = divisor.parse::<f64>().is_ok() && operation.starts_with('*');
    is_plain.then(|| format!("{whole}/{count}{operation}"))
}

#[cfg(test)]
mod tests {
    use super::super::super::results::tests::conversation;
    use super::*;

    #[test]
    fn shares_are_applied_to_an_amount() {
        for (text, expected) in [
            ("how much with 20% off", Some("50*(1-20/100)")),
            ("and each with a 10% tip on top?", Some("50*(1+10/100)")),
            ("con un 10 % de propina encima", Some("50*(1+10/100)")),
            ("con un 10 % de propina encima, cada uno de los 6", Some("50*(1+10/100)")),
            ("con un 10 % de propina encima, cada uno de los 7", None),
            ("with 20% off the second shirt", None),
            ("with 20%", None),
        ] {
            let earlier = conversation(&[("300/6", "50")]);
            assert_eq!(with_share(&tokens(text), "50", &earlier).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn prices_of_one_thing_are_quotients() {
        for (text, expected) in [
            ("6 tickets cost 81, so how much is one?", Some("81/6")),
            ("we got 4 chairs for 90, what's that each", Some("90/4")),
            ("6 tickets cost 81 each, so how much is one?", None),
            ("6 tickets cost 81, how much are they?", None),
        ] {
            assert_eq!(price_of_one(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn calculations_are_repeated_with_another_amount() {
        let mut earlier = vec![ChatMessage::text(Role::User, "quotes. Hale: 310. Dobson: 275")];
        earlier.extend(conversation(&[("275*(1+20/100)", "330")]));
        for (text, expected) in [
            ("same for the first one", Some("310*(1+20/100)")),
            ("and the same for the other one", Some("310*(1+20/100)")),
            ("same for the third one", None),
            ("same for the first room", None),
        ] {
            assert_eq!(same_for(text, &earlier).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn the_number_of_people_is_replaced_below_a_share() {
        let step = |expression: &str, result: &str| Calculation {
            asked: String::new(),
            expression: expression.to_owned(),
            result: result.to_owned(),
        };
        let known = [step("86.40/4", "21.6"), step("21.6*(1+10/100)", "23.76")];
        let other = |text: &str| other_count(text, &known);
        assert_eq!(other("what if theres 6 of us instead, tip still in").as_deref(), Some("86.40/6*(1+10/100)"));
        assert_eq!(other("what if there are 6 of us, without the tip"), None);
        let known = [step("86.40/4", "21.6"), step("(86.40/4) + 10%", "23.76")];
        let expected = Some("(86.40/3) + 10%");
        assert_eq!(other_count("keep the tip but only 3 of us are paying", &known).as_deref(), expected);
    }
}
