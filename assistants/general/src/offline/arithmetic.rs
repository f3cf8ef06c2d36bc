//! Calculations in words, with references to numbers of the conversation: "divide the first result by 22", "take 19% off that",
//! "the difference between the two".

mod corrections;
mod followups;
mod grammar;
mod hours;
mod numbers;
mod pricing;
mod problems;
mod quantities;
mod remainder;
mod spending;
mod steps;
mod wordings;

use threadkeep::ChatMessage;
use threadkeep::dialogue::Utterance;

use super::results::{Calculation, calculations, last_answered};
use crate::evidence::sentences;
use corrections::{UNITS, corrected};
use grammar::{difference, phrase};
pub(super) use hours::states_hours;
pub(super) use numbers::plain_numbers;
pub(super) use numbers::spelled;
use numbers::{Item, Numbers, PRONOUNS, is_number, items, tokens};
use pricing::{cost, per_head, per_piece, requested_product, total_of, with_percent_on_top};
pub(super) use steps::{before_step, recalled};

/// The maximum number of words in a calculation.
const MAX_WORDS: usize = 24;
/// The maximum number of words in an addition to the last result: "plus a bus for 150".
const MAX_ADDED_WORDS: usize = 7;
/// Returns the expression that a message means.
pub(super) fn complete(text: &str, earlier: &[ChatMessage]) -> Option<String> {
    let known = calculations(earlier);
    spending::total(text, earlier)
        .or_else(|| hours::total(text, earlier))
        .or_else(|| followups::same_for(text, earlier))
        .or_else(|| followups::other_count(text, &known))
        .or_else(|| corrected(text, earlier, &known))
        .or_else(|| with_units(text, earlier, &known))
        .or_else(|| in_words(text, earlier, &known))
}

/// Returns the calculation of a message with amounts, rates or shares.
fn with_units(text: &str, earlier: &[ChatMessage], known: &[Calculation]) -> Option<String> {
    let tokens = tokens(text);
    if tokens.is_empty() || tokens.len() > MAX_WORDS {
        return None;
    }
    let answered = last_answered(earlier, known);
    let last = || answered.clone().or_else(|| Numbers::new("", earlier, known).last);
    wordings::stated(text, earlier, answered.as_deref(), known)
        .or_else(|| quantities::calculated(text, earlier, known))
        .or_else(|| problems::solved(text, earlier, answered.as_deref(), known))
        .or_else(|| per_head(&tokens, answered.as_deref()))
        .or_else(|| requested_product(text))
        .or_else(|| followups::price_of_one(text))
        .or_else(|| with_percent_on_top(&tokens, last().as_deref()))
        .or_else(|| remainder::owed(text, earlier))
        .or_else(|| remainder::left(text, earlier, answered.as_deref()))
        .or_else(|| quantities::changed(text, earlier, last().as_deref()))
        .or_else(|| quantities::scaled(text, earlier))
}

/// Words that a calculation may begin with.
const FILLERS: [&str; 42] = [
    "oops",
    "no",
    "sorry",
    "i",
    "meant",
    "mean",
    "and",
    "n",
    "okay",
    "then",
    "now",
    "ok",
    "so",
    "please",
    "can",
    "could",
    "you",
    "what",
    "whats",
    "is",
    "how",
    "much",
    "are",
    "calculate",
    "compute",
    "work",
    "out",
    "the",
    "a",
    "an",
    "well",
    "y",
    "entonces",
    "ahora",
    "cuanto",
    "es",
    "son",
    "el",
    "la",
    "would",
    "be",
    "thats",
];
/// Returns the expression of a calculation in words.
fn in_words(text: &str, earlier: &[ChatMessage], known: &[Calculation]) -> Option<String> {
    let all: Vec<&str> = sentences(text).collect();
    let (last, before) = all.split_last()?;
    // "Our rent is 900, what's a quarter of that?"
    let (lead, last) = match last.rsplit_once(", ") {
        Some((lead, rest)) if before.is_empty() && starts_with_question(rest) => (lead, rest),
        _ => ("", *last),
    };
    let last = without_aside(last);
    let before = format!("{} {lead}", before.join(" "));
    let tokens = tokens(last);
    if tokens.is_empty() || tokens.len() > MAX_WORDS {
        return None;
    }
    let numbers = Numbers::new(&before, earlier, known);
    if let Some(total) = total_with_share(&tokens, known) {
        return Some(total);
    }
    if let Some(last) = last_answered(earlier, known)
        && let Some(expression) = per_piece(&tokens, &last, known).or_else(|| several_of(&tokens, &last))
    {
        return Some(expression);
    }
    let amount = if lead.is_empty() { last_answered(earlier, known) } else { numbers.last.clone() };
    if let Some(changed) = amount.and_then(|amount| followups::with_share(&tokens, &amount, earlier)) {
        return Some(changed);
    }
    if let Some(total) = of_last_numbers(&tokens, &numbers)
        .or_else(|| to_pay(&tokens, &numbers))
        .or_else(|| cost(&tokens, &numbers.texts))
    {
        return Some(total);
    }
    let is_polite = |token: &String| matches!(&**token, "pls" | "please" | "plz" | "thanks" | "thx" | "porfa");
    let tokens: Vec<String> = tokens.into_iter().filter(|token| !is_polite(token)).collect();
    let tokens = operation_on_taken(&tokens).unwrap_or(tokens);
    let tokens = supposed_operation(&tokens).unwrap_or(tokens);
    let (mut items, mut refers) = items(&tokens, &numbers)?;
    if let Some(last) = numbers.last.as_ref().filter(|_| !refers) {
        let count = items.iter().filter(|item| matches!(item, Item::Number(_))).count();
        let first = items.iter().find(|item| !item.is(&FILLERS))?.clone();
        let ends_open = items.last().is_some_and(|item| item.is(&["off"]));
        if first.is(&["take", "knock"]) && ends_open && count == 1 {
            items.push(Item::Number(last.clone()));
            refers = true;
        } else if first.is(&["as"]) {
            // "As a percentage of 1240?"
            let start = items.iter().position(|item| item.is(&["as"])).unwrap_or_default();
            items.insert(start, Item::Number(last.clone()));
            refers = true;
        } else if (first.is(&["plus"]) || is_on_top(&items)) && count == 1 && items.len() <= MAX_ADDED_WORDS {
            let first = Item::Word("plus".to_owned());
            let added = items.iter().rev().find(|item| matches!(item, Item::Number(_)))?.clone();
            let share = items.iter().find(|item| item.is(&["percent"])).cloned();
            items = [Item::Number(last.clone()), first, added].into_iter().chain(share).collect();
            refers = true;
        }
    }
    let start = items.iter().position(|item| !item.is(&FILLERS) && !item.is(&[","]))?;
    // "Put both together"
    if items[start].is(&["put"]) && items.last().is_some_and(|item| item.is(&["together"])) {
        items[start] = Item::Word("add".to_owned());
    }
    let end = items.iter().rposition(|item| !item.is(&UNITS) && !item.is(&[","])).map_or(items.len(), |at| at + 1);
    // "Which of them", "the difference of" need their last word.
    let expression = phrase(items.get(start..end)?)?;
    // Without a reference, only a request is a calculation: "add 12.5, 17 and 21.5".
    let requests = items[start].is(&REQUESTS);
    let has_operation = expression.contains(['+', '-', '*', '/', '^']);
    let corrects = tokens.iter().any(|token| matches!(&**token, "meant" | "mean"));
    (has_operation && (refers || requests || corrects || is_math(&items))).then_some(expression)
}

/// Returns the product for "and 3 of those?" after a result.
fn several_of(tokens: &[String], last: &str) -> Option<String> {
    let words: Vec<&str> = tokens.iter().map(String::as_str).filter(|word| !FILLERS.contains(word)).collect();
    match words[..] {
        [count, "of", "those" | "them" | "these"] => {
            let count = if is_number(count) { count } else { spelled(count)? };
            Some(format!("{count}*{last}"))
        }
        _ => None,
    }
}

/// Returns the operation in "take that number and halve it" and "go back to the 90 and halve it": "halve that number".
fn operation_on_taken(tokens: &[String]) -> Option<Vec<String>> {
    const OPERATIONS: [&str; 10] =
        ["halve", "double", "triple", "square", "divide", "multiply", "add", "subtract", "split", "cube"];
    let words: Vec<&str> = tokens.iter().map(String::as_str).collect();
    let is_opening = |word: &&&str| FILLERS.contains(*word) || matches!(**word, "hang" | "on" | "wait" | "," | "lets");
    let rest = match &words[words.iter().take_while(is_opening).count()..] {
        ["take", rest @ ..] | ["go", "back", "to", rest @ ..] => rest,
        _ => return None,
    };
    let at = rest.windows(2).position(|pair| pair[0] == "and" && OPERATIONS.contains(&pair[1]))?;
    let (taken, operation) = (&rest[..at], &rest[at + 1..]);
    // "Go back to the 12 and square it"
    let taken = match taken {
        ["the", number] if is_number(number) => &taken[1..],
        _ => taken,
    };
    let it = operation.iter().position(|word| matches!(*word, "it" | "that" | "them"));
    let words = match it {
        Some(it) => [&operation[..it], taken, &operation[it + 1..]].concat(),
        None => return None,
    };
    Some(words.into_iter().map(str::to_owned).collect())
}

/// Removes a remark after a comma: "double that number, just for fun".
fn without_aside(sentence: &str) -> &str {
    let Some((first, rest)) = sentence.rsplit_once(", ") else { return sentence };
    let is_aside =
        matches!(Utterance::new(rest).word(0), "just" | "please" | "pls" | "thanks" | "thx" | "for" | "porfa")
            && !rest.contains(|c: char| c.is_ascii_digit());
    if is_aside { first } else { sentence }
}

/// Returns the operation in "what do you get if you divide 15 by 4".
fn supposed_operation(tokens: &[String]) -> Option<Vec<String>> {
    let at = tokens.windows(2).position(|pair| {
        matches!(&*pair[0], "if" | "when") && matches!(&*pair[1], "you" | "i" | "we" | "they") || pair[0] == "si"
    })?;
    let is_opening = |token: &String| {
        FILLERS.contains(&token.as_str())
            || matches!(&**token, "do" | "does" | "get" | "happens" | "comes" | "out" | "i" | "we")
    };
    let start = at + if tokens[at] == "si" { 1 } else { 2 };
    let operates = tokens.get(start).is_some_and(|token| REQUESTS.contains(&token.as_str()));
    (operates && tokens[..at].iter().all(is_opening)).then(|| tokens[start..].to_vec())
}

/// Verbs of calculations.
const REQUESTS: [&str; 13] = [
    "add", "divide", "split", "share", "multiply", "subtract", "take", "sum", "suma", "double", "halve", "triple",
    "divides",
];

/// Whether a message ends like "with 10 euros shipping on top".
fn is_on_top(items: &[Item]) -> bool {
    let [.., before, last] = items else { return false };
    items.iter().any(|item| item.is(&["with", "plus"])) && last.is(&["top"]) && before.is(&["on"])
}

/// Returns what is left of a stated price after a stated reduction, or with a stated addition: "it costs 60 euros and there is 10% off.
/// What do I pay?"
fn to_pay(tokens: &[String], numbers: &Numbers<'_>) -> Option<String> {
    let asks = tokens.iter().any(|token| matches!(&**token, "pay" | "cost" | "costs"))
        && tokens.iter().any(|token| matches!(&**token, "what" | "much" | "whats"))
        && tokens.iter().all(|token| {
            FILLERS.contains(&token.as_str())
                || matches!(
                    &**token,
                    "do" | "does"
                        | "will"
                        | "did"
                        | "i"
                        | "we"
                        | "it"
                        | "that"
                        | "pay"
                        | "cost"
                        | "have"
                        | "to"
                        | "in"
                        | "end"
                        | "total"
                )
        });
    let text = numbers.texts.iter().find(|text| !text.trim().is_empty()).filter(|_| asks)?;
    let stated = numbers::tokens(text);
    let [price] = &plain_numbers(text)[..] else { return None };
    let percents: Vec<&String> = stated.windows(2).filter(|pair| pair[1] == "percent").map(|pair| &pair[0]).collect();
    let [percent] = percents[..] else { return None };
    let says = |known: &[&str]| stated.iter().any(|word| known.contains(&word.as_str()));
    let sign = match (
        says(&["off", "discount", "reduction", "cheaper"]),
        says(&["vat", "tax", "tip", "service", "surcharge"]),
    ) {
        (true, false) => '-',
        (false, true) if !says(&["including", "includes", "included", "incl"]) => '+',
        _ => return None,
    };
    Some(format!("{price}*(1{sign}{percent}/100)"))
}

fn starts_with_question(text: &str) -> bool {
    let utterance = Utterance::new(text);
    matches!(utterance.word(0), "what" | "whats" | "how" | "and" | "so" | "cuanto")
}

/// Whether words name an operation that nothing else means.
fn is_math(items: &[Item]) -> bool {
    items.iter().any(|item| {
        item.is(&[
            "power",
            "root",
            "sqrt",
            "square",
            "cube",
            "squared",
            "cubed",
            "times",
            "percent",
            "percentage",
            "twice",
            "triple",
            "quarter",
            "fifth",
            "tenth",
            "thirds",
            "quarters",
            "fifths",
            "tenths",
        ])
    })
}

/// Returns the calculation for "by how much?" and for "how much is that together?"
fn of_last_numbers(tokens: &[String], numbers: &Numbers<'_>) -> Option<String> {
    let words = tokens.iter().map(String::as_str).filter(|word| !FILLERS.contains(word) && *word != ",");
    let words: Vec<&str> = words.collect();
    let is_change = |word: &&str| {
        let changes = ["by", "did", "go", "went", "up", "down", "rise", "fall", "change", "more", "less"];
        PRONOUNS.contains(word) || changes.contains(word)
    };
    if words.first() == Some(&"by") && tokens.iter().any(|token| token == "much") && words.iter().all(is_change) {
        return match (numbers.group(2), numbers.known) {
            (Some(group), _) => difference(&group[0], &group[1]),
            (None, [.., one, other]) => difference(&one.result, &other.result),
            _ => None,
        };
    }
    // "What is the difference?", "the gap between those two totals"
    let is_pair = |word: &&str| {
        PRONOUNS.contains(word)
            || matches!(
                *word,
                "between"
                    | "em"
                    | "those"
                    | "these"
                    | "two"
                    | "both"
                    | "totals"
                    | "results"
                    | "prices"
                    | "amounts"
                    | "entre"
            )
    };
    let named: Vec<&str> = words.iter().copied().filter(|word| !is_pair(word)).collect();
    // "All three together?"
    let size = words.iter().find_map(|word| spelled(word)?.parse::<usize>().ok());
    let size = size.filter(|size| numbers.groups.iter().any(|group| group.len() == *size));
    let words: Vec<&str> = words.into_iter().filter(|word| size.is_none() || spelled(word).is_none()).collect();
    if matches!(named[..], ["difference" | "diferencia" | "gap"]) {
        let pair =
            numbers.group(2).map(|group| (group[0].clone(), group[1].clone())).or_else(|| numbers.replies.clone())?;
        return difference(&pair.0, &pair.1);
    }
    let is_total =
        |word: &&str| matches!(*word, "together" | "altogether" | "total" | "combined" | "everything" | "sum" | "add");
    let is_average = |word: &&str| matches!(*word, "average" | "mean" | "promedio" | "media");
    // "How many km is that in total?"
    let unit = words.iter().position(|word| *word == "many").and_then(|many| words.get(many + 1)).copied();
    let only_total = words.iter().all(|word| {
        is_total(word)
            || is_average(word)
            || PRONOUNS.contains(word)
            || unit == Some(*word)
            || matches!(*word, "those" | "they" | "all" | "in" | "of" | "both" | "many" | "do" | "up" | "to")
    });
    if only_total && words.iter().any(is_average) {
        let numbers = numbers.groups.iter().find(|group| group.len() > 1)?;
        return Some(format!("({})/{}", numbers.join("+"), numbers.len()));
    }
    // "Both together?" after two results
    if let Some(pair) = numbers.group(2).filter(|_| only_total && words.contains(&"both")) {
        // "4 hours at 21.30" states no two amounts.
        let states_product = numbers.texts.iter().any(|text| {
            let stated = self::tokens(text);
            plain_numbers(text) == *pair && stated.iter().any(|word| matches!(&**word, "at" | "each" | "per" | "times"))
        });
        return (!states_product).then(|| pair.join("+"));
    }
    // "Add that to the list" is no question.
    // "Total hours?"
    if let (["total", _], Some(own)) =
        (&words[..], numbers.groups.first().filter(|_| plain_numbers(&numbers.texts[0]).len() > 1))
    {
        return Some(own.join("+"));
    }
    let adds_up = !words.contains(&"add") || words.ends_with(&["add", "up", "to"]);
    if !words.iter().any(is_total) || !only_total || !adds_up {
        return None;
    }
    match numbers.texts.iter().find(|text| plain_numbers(text).len() > 1) {
        Some(text) => total_of(text),
        None => numbers.groups.iter().find(|group| group.len() > 1).map(|group| group.join("+")),
    }
}

/// Returns the total for "and the total with the tip?" after a share was calculated: "(12.5/100*186.4)".
fn total_with_share(tokens: &[String], known: &[Calculation]) -> Option<String> {
    let has = |known: &[&str]| tokens.iter().any(|token| known.contains(&token.as_str()));
    let asks = has(&["total", "altogether", "all"])
        && has(&["with", "including", "incl", "plus", "con"])
        && has(&["tip", "tax", "vat", "service", "it", "that", "propina", "iva", "eso"]);
    let expression = known.last().filter(|_| asks && !tokens.iter().any(|token| is_number(token)))?;
    let whole = expression.expression.trim_matches(['(', ')']).split_once("/100*")?.1;
    whole.parse::<f64>().ok()?;
    Some(format!("{whole}+{}", expression.result))
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::conversation;
    use super::*;

    #[test]
    fn calculations_in_words_are_understood() {
        let earlier = conversation(&[("3*8", "24"), ("24+6", "30")]);
        for (text, expected) in [
            ("what is the difference between the two?", Some("30-24")),
            ("divide the second result by the first", Some("30/24")),
            ("subtract the first result from the second", Some("30-24")),
            ("add the first and the last", Some("24+30")),
            ("what's the average of both results?", Some("(24+30)/2")),
            ("that as a percentage of the first result", Some("30/24*100")),
            ("what percentage of the first result is that?", Some("30/24*100")),
            ("take 20% off that", Some("30*(1-20/100)")),
            ("what's 5% of the first result", Some("5/100*24")),
            ("four times the first one", Some("4*24")),
            ("twice that", Some("2*30")),
            ("a third of that", Some("30/3")),
            ("what is the square root of the first result?", Some("(24)^0.5")),
            ("what do the last two results add up to?", Some("24+30")),
            ("Add 2.5, 7 and 1.5", Some("2.5+7+1.5")),
            ("The bill was 80 euros. What's a 15% tip on that?", Some("15/100*80")),
            ("split that between 6 people", Some("30/6")),
            ("that plus 20 plus 10%", Some("(30+20)*(1+10/100)")),
            ("the first result minus half of the second", Some("24-(30/2)")),
            ("add the two eggs", None),
            ("add milk and bread to it", None),
            ("the difference between the first house and the second", None),
            ("what was that?", None),
            ("is that it", None),
            ("take the bread off the list", None),
            ("what do you get if you divide 15 by 4", Some("15/4")),
            ("three fifths of 950 = ?", Some("3/5*950")),
            ("whats a quarter of 372", Some("372/4")),
            ("a quarter of the guests", None),
            ("double 37", Some("2*37")),
            ("double that number, just for fun", Some("2*30")),
            ("now knock a flat 15 off that", Some("30-15")),
            ("84 quid split between 6 of us?", Some("84/6")),
            ("27 boxes at 13.40 each pls", Some("27*13.40")),
            ("27 boxes at 13.40 each", None),
            ("square it", Some("30^2")),
            ("divide that plus 6 by 4", Some("(30+6)/4")),
            ("by how much?", Some("30-24")),
            ("The boots cost 60 euros with a 10% discount. What do I pay?", Some("60*(1-10/100)")),
            ("The boots cost 60 euros including 10% VAT. What do I pay?", None),
            ("and with 5 euros postage on top?", Some("30+5")),
            // Two more persons, not euros.
            ("and with 2 more?", None),
            ("add up the last two results", Some("24+30")),
            ("put both results together", Some("24+30")),
            ("put both on the table", None),
            ("how far apart are the two results?", Some("30-24")),
            ("what's 2 to the power of 5?", Some("2^5")),
            ("I ran 8 km and then 5 km. How many km is that in total?", Some("8+5")),
            ("The rooms are 12, 15 and 18 square metres. What do they add up to?", Some("12+15+18")),
            ("The rooms are 12, 15 and 18 square metres. And the average?", Some("(12+15+18)/3")),
            ("My wage is 2000. what's 10% of my wage?", Some("10/100*2000")),
            ("add the fee of 5 to that", Some("30+5")),
            ("take 20% off", Some("30*(1-20/100)")),
            ("take 15% off that one", Some("30*(1-15/100)")),
            ("plus 19% vat", Some("(30)*(1+19/100)")),
            ("n half of that", Some("30/2")),
            ("what is the sum of the last two results?", Some("24+30")),
            ("96 is what percent of 160?", Some("96/160*100")),
            ("and the square of 15?", Some("15^2")),
            ("sorry, it should be 7 instead of 6", Some("24+7")),
            ("not 24 but 25", Some("25+6")),
            ("the party has 7 guests instead of 6", None),
            ("what's the difference?", Some("30-24")),
            ("as a percentage of 24?", Some("30/24*100")),
            ("take that number and halve it", Some("30/2")),
            ("take 80 and divide it by 5", Some("80/5")),
            ("take the first result and double it", Some("2*24")),
            ("no hang on go back to the 24 and split it by 3", Some("24/3")),
            ("whats the gap between those two totals", Some("30-24")),
            ("mind the gap between the two houses", None),
            ("knock another 20 quid off", Some("30-20")),
            ("what percent is 45 of 360?", Some("45/360*100")),
            ("if they take 15 off that", Some("30-15")),
            ("the sofa is 1499, how much with 20% off", Some("1499*(1-20/100)")),
            ("split that over 5 months", Some("30/5")),
            ("both together?", Some("24+30")),
            ("Tiles are 23 euros per metre. Multiply the result by 23", Some("30*23")),
            ("The total is 80 euros. Take 20% off the total", Some("80*(1-20/100)")),
            ("divide the larger one by 2", Some("30/2")),
            ("6 chairs at 89 euros each, what do they cost?", Some("6*89")),
            ("Plus a taxi for 15.", Some("30+15")),
            ("oops, I meant 90 / 5", Some("90/5")),
            ("how much more is that than the first one?", Some("30-24")),
            ("A seat is 12 euros and we are 5. How much is that in total?", Some("12*5")),
            ("The gas is 70 and the water is 30. How much is that in total?", Some("70+30")),
        ] {
            assert_eq!(complete(text, &earlier).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn numbers_of_unanswered_requests_are_not_meant() {
        let earlier = |reply: &str| {
            [
                ChatMessage::text(threadkeep::Role::User, "boots are 129, cheaper by a third. price?"),
                ChatMessage::text(threadkeep::Role::Assistant, reply),
            ]
        };
        assert_eq!(complete("double that", &earlier(super::super::NOT_FOUND)), None);
        assert_eq!(complete("double that", &earlier("I will keep that in mind.")).as_deref(), Some("2*129"));
    }

    #[test]
    fn numbers_of_the_last_calculation_are_replaced() {
        for (expression, text, expected) in [
            ("90/4", "no, between 5", Some("90/5")),
            ("90/4", "ok, by 6 then", Some("90/6")),
            ("90/4", "no, by three, Leo is not coming", Some("90/3")),
            ("(40/100*51)", "and 60%?", Some("(60/100*51)")),
            ("(40/100*51)", "sorry, it's 45%", Some("(45/100*51)")),
            ("(40/100*51)", "no, make that 45%", Some("(45/100*51)")),
            ("144/480*100", "and the other way round?", Some("480/144*100")),
            ("90/4", "oops, by 6 I meant", Some("90/6")),
            ("84/560*100", "and 126?", Some("126/560*100")),
            ("84/560*100", "n 90 of 360", Some("90/360*100")),
            ("(820)*(1+20/100)", "and at 5%?", Some("(820)*(1+5/100)")),
            ("14+27+33", "leave out the 14", Some("27+33")),
            ("(12/100*600)", "and of 900?", Some("(12/100*900)")),
            ("90/4", "no, 6", Some("90/6")),
            ("90/4", "¿y si somos 10?", Some("90/10")),
            ("90/4", "no, at 5", None),
            ("90/4", "and 60%?", None),
        ] {
            let earlier = conversation(&[(expression, "1")]);
            assert_eq!(corrected(text, &earlier, &calculations(&earlier)).as_deref(), expected, "{text}");
        }
    }
}
