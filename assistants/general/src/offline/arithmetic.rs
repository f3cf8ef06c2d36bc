//! Calculations in words, with references to numbers of the conversation: "divide the first result by 22", "take 19% off that",
//! "the difference between the two".

use threadkeep::dialogue::{Utterance, is_question};
use threadkeep::{ChatMessage, Role};

use super::quoting::quoted_texts;
use super::results::{Calculation, Reference, calculations, reference_at};
use crate::evidence::sentences;

/// The maximum number of words in a calculation.
const MAX_WORDS: usize = 24;
/// The maximum number of words in an addition to the last result: "plus a bus for 150".
const MAX_ADDED_WORDS: usize = 7;
/// Words that refer to the last number.
const PRONOUNS: [&str; 8] = ["that", "it", "this", "eso", "esto", "ello", "lo", "them"];

/// Returns the expression that a message means.
pub(super) fn complete(text: &str, earlier: &[ChatMessage]) -> Option<String> {
    let known = calculations(earlier);
    corrected(text, earlier, &known).or_else(|| in_words(text, earlier, &known))
}

/// Splits a message into words, numbers and signs: "12.5%" becomes "12.5" and "percent".
fn tokens(text: &str) -> Vec<String> {
    let spaced = text.replace(['\'', '’'], "");
    let mut tokens = Vec::new();
    for piece in spaced.split_whitespace() {
        let piece = piece
            .trim_matches(|c: char| matches!(c, '?' | '!' | ';' | ':' | '"' | '“' | '”' | '€' | '$' | '£' | '(' | ')'));
        let ends_with_comma = piece.ends_with(',');
        let piece = piece.trim_end_matches(['.', ',']);
        let (piece, is_percent) = piece.strip_suffix('%').map_or((piece, false), |piece| (piece, true));
        let is_number = piece.starts_with(|c: char| c.is_ascii_digit())
            && piece.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ','));
        if is_number {
            tokens.push(decimal(piece));
        } else {
            tokens.extend(Utterance::new(piece).words().iter().map(|word| word.folded.clone()));
            tokens.extend(matches!(piece, "+" | "-" | "*" | "/" | "×" | "÷").then(|| piece.to_owned()));
        }
        tokens.extend(is_percent.then(|| "percent".to_owned()));
        tokens.extend(ends_with_comma.then(|| ",".to_owned()));
    }
    tokens
}

/// Returns a number with a decimal point and without separators of thousands.
fn decimal(text: &str) -> String {
    match text.rsplit_once(',') {
        Some((whole, rest)) if rest.len() == 3 || text.contains('.') => format!("{}{rest}", whole.replace(',', "")),
        Some((whole, rest)) => format!("{whole}.{rest}"),
        None => text.to_owned(),
    }
}

fn is_number(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_digit())
        || token.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Returns the digits of a number that is written as a word.
pub(super) fn spelled(token: &str) -> Option<&'static str> {
    const NAMES: [(&str, &str); 24] = [
        ("two", "2"),
        ("three", "3"),
        ("four", "4"),
        ("five", "5"),
        ("six", "6"),
        ("seven", "7"),
        ("eight", "8"),
        ("nine", "9"),
        ("ten", "10"),
        ("eleven", "11"),
        ("twelve", "12"),
        ("twenty", "20"),
        ("hundred", "100"),
        ("dos", "2"),
        ("tres", "3"),
        ("cuatro", "4"),
        ("cinco", "5"),
        ("seis", "6"),
        ("siete", "7"),
        ("ocho", "8"),
        ("nueve", "9"),
        ("diez", "10"),
        ("doce", "12"),
        ("cien", "100"),
    ];
    NAMES.iter().find(|(name, _)| *name == token).map(|(_, number)| *number)
}

/// The numbers to which the words of a message may refer.
struct Numbers<'a> {
    known: &'a [Calculation],
    /// What "that" means.
    last: Option<String>,
    /// What "the two" or "all three" may mean, most likely first.
    groups: Vec<Vec<String>>,
    /// The statements of the user, newest first, in which "my budget" may have a value.
    stated: Vec<String>,
    /// The texts whose numbers "in total" may mean, most likely first.
    texts: [String; 2],
}

impl<'a> Numbers<'a> {
    fn new(before: &str, earlier: &[ChatMessage], known: &'a [Calculation]) -> Self {
        let own = plain_numbers(before);
        let message = |role: Role| {
            let message = earlier.iter().rev().find(|message| message.role == role && !message.plain_text().is_empty());
            message.map(ChatMessage::plain_text).unwrap_or_default()
        };
        let (reply, said) = (message(Role::Assistant), message(Role::User));
        let result = known.last().map(|calculation| calculation.result.clone());
        let is_result = result.as_ref().is_some_and(|result| reply.ends_with(&format!("= {result}")));
        let quoted = plain_numbers(&quoted_texts(&reply));
        let stated = plain_numbers(&said);
        let last = match (&own[..], &quoted[..], &stated[..]) {
            ([number], ..) => Some(number.clone()),
            _ if is_result => result,
            (_, [number], _) | (_, [], [number]) => Some(number.clone()),
            _ => result,
        };
        let results: Vec<String> =
            known.iter().rev().take(2).rev().map(|calculation| calculation.result.clone()).collect();
        let texts = [own, quoted, stated].into_iter().filter(|numbers| numbers.len() > 1);
        let groups = match known.len() == 2 || is_result {
            true => std::iter::once(results).chain(texts).collect(),
            false => texts.chain([results]).collect(),
        };
        let of_user = earlier.iter().rev().filter(|message| message.role == Role::User);
        let stated = std::iter::once(before.to_owned())
            .chain(of_user.map(ChatMessage::plain_text).filter(|text| !is_question(text)))
            .collect();
        Self { known, last, groups, stated, texts: [before.to_owned(), said] }
    }
}

impl Numbers<'_> {
    /// Returns the numbers that "the two" or "all three" mean.
    fn group(&self, size: usize) -> Option<&Vec<String>> {
        self.groups.iter().find(|group| group.len() == size && size > 1)
    }

    /// Returns the number that the user stated for a name: "my budget".
    fn named(&self, name: &str) -> Option<String> {
        let clauses = |text: &str| -> Vec<String> {
            let parts = sentences(text).flat_map(|sentence| sentence.split(", ")).flat_map(|part| part.split(" and "));
            parts.map(str::to_owned).collect()
        };
        self.stated.iter().find_map(|text| {
            clauses(text).into_iter().rev().find_map(|clause| {
                let is_named = Utterance::new(&*clause).words().iter().any(|word| word.folded == name);
                <[String; 1]>::try_from(plain_numbers(&clause)).ok().filter(|_| is_named).map(|[number]| number)
            })
        })
    }
}

/// Returns the numbers of a text that are neither percentages, times, nor days of a month.
fn plain_numbers(text: &str) -> Vec<String> {
    const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let tokens = tokens(text);
    let is_plain = |at: &usize| {
        let next = tokens.get(at + 1).map_or("", String::as_str);
        let is_day = MONTHS.iter().any(|month| next.starts_with(month)) && next.len() > 2;
        is_number(&tokens[*at]) && next != "percent" && !is_day
    };
    (0..tokens.len()).filter(is_plain).map(|at| tokens[at].clone()).collect()
}

/// A word of a calculation, or a number.
#[derive(Clone, Debug, PartialEq)]
enum Item {
    Number(String),
    Group(Vec<String>),
    Word(String),
}

impl Item {
    fn is(&self, known: &[&str]) -> bool {
        matches!(self, Self::Word(word) if known.contains(&word.as_str()))
    }
}

/// Replaces references by numbers. Returns whether there was one.
fn items(tokens: &[String], numbers: &Numbers<'_>) -> Option<(Vec<Item>, bool)> {
    let words: Vec<&str> = tokens.iter().map(String::as_str).collect();
    let (mut items, mut refers, mut at) = (Vec::new(), false, 0);
    let result = |position: usize| numbers.known.get(position).map(|calculation| calculation.result.clone());
    while at < words.len() {
        let word = words[at];
        // "A third of that" is a share.
        let is_share = words.get(at + 1) == Some(&"of");
        let reference =
            reference_at(&words, at, numbers.known.len()).filter(|_| !numbers.known.is_empty() && !is_share);
        if let Some((reference, end, _)) = reference {
            items.push(match reference {
                Reference::One(position) => Item::Number(result(position)?),
                Reference::Several(range) => Item::Group(range.map(result).collect::<Option<_>>()?),
            });
            (refers, at) = (true, end);
            continue;
        }
        let size = match words[at..] {
            ["both", ..] => Some((2, 1)),
            ["all" | "the" | "those" | "these", count, ..] => {
                spelled(count).and_then(|count| Some((count.parse().ok()?, 2)))
            }
            _ => None,
        };
        if let Some((group, length)) = size.and_then(|(size, length)| Some((numbers.group(size)?, length))) {
            items.push(Item::Group(group.clone()));
            at += length;
            at += usize::from(matches!(words.get(at), Some(&("numbers" | "prices" | "amounts" | "results" | "rents"))));
            refers = true;
            continue;
        }
        // "My budget", "the rent", "the deposit of 60"
        if let ["my" | "the" | "our", name, rest @ ..] = &words[at..]
            && !NOT_NAMES.contains(name)
        {
            let own = match rest {
                ["of", number, ..] if is_number(number) => Some(((*number).to_owned(), 4)),
                _ => numbers.named(name).map(|number| (number, 2)),
            };
            if let Some((number, length)) = own {
                items.push(Item::Number(number));
                (refers, at) = (true, at + length);
                continue;
            }
        }
        let names_last = PRONOUNS.contains(&word)
            || matches!(words[at..], ["the", "result" | "total" | "sum" | "amount" | "answer", ..])
                && !matches!(words.get(at + 2), Some(&("of" | "with" | "including" | "for")));
        if let (true, Some(last)) = (names_last, &numbers.last) {
            items.push(Item::Number(last.clone()));
            at += if PRONOUNS.contains(&word) { 1 } else { 2 };
            // "That total", "this result"
            at += usize::from(matches!(words.get(at), Some(&("result" | "total" | "sum" | "amount" | "number"))));
            refers = true;
            continue;
        }
        match spelled(word) {
            _ if is_number(word) => items.push(Item::Number(word.to_owned())),
            Some(number) => items.push(Item::Number(number.to_owned())),
            None => items.push(Item::Word(word.to_owned())),
        }
        at += 1;
    }
    Some((items, refers))
}

const FILLERS: [&str; 40] = [
    "oops",
    "no",
    "sorry",
    "i",
    "meant",
    "mean",
    "and",
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
const UNITS: [&str; 24] = [
    "euros",
    "euro",
    "eur",
    "dollars",
    "pounds",
    "people",
    "persons",
    "ways",
    "of",
    "us",
    "please",
    "then",
    "now",
    "again",
    "each",
    "altogether",
    "together",
    "in",
    "total",
    "instead",
    "friends",
    "days",
    "months",
    "personas",
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
    let before = format!("{} {lead}", before.join(" "));
    let tokens = tokens(last);
    if tokens.is_empty() || tokens.len() > MAX_WORDS {
        return None;
    }
    let numbers = Numbers::new(&before, earlier, known);
    if let Some(total) = total_with_share(&tokens, known) {
        return Some(total);
    }
    if let Some(total) = of_last_numbers(&tokens, &numbers) {
        return Some(total);
    }
    let (mut items, mut refers) = items(&tokens, &numbers)?;
    if let Some(last) = numbers.last.as_ref().filter(|_| !refers) {
        let count = items.iter().filter(|item| matches!(item, Item::Number(_))).count();
        let first = items.iter().find(|item| !item.is(&FILLERS))?.clone();
        let ends_open = items.last().is_some_and(|item| item.is(&["off"]));
        if first.is(&["take", "knock"]) && ends_open && count == 1 {
            items.push(Item::Number(last.clone()));
            refers = true;
        } else if first.is(&["plus"]) && count == 1 && items.len() <= MAX_ADDED_WORDS {
            let added = items.iter().rev().find(|item| matches!(item, Item::Number(_)))?.clone();
            let is_share = items.iter().any(|item| item.is(&["percent"]));
            if !is_share {
                items = vec![Item::Number(last.clone()), first, added];
                refers = true;
            }
        }
    }
    let start = items.iter().position(|item| !item.is(&FILLERS) && !item.is(&[","]))?;
    let end = items.iter().rposition(|item| !item.is(&UNITS) && !item.is(&[","])).map_or(items.len(), |at| at + 1);
    // "Which of them", "the difference of" need their last word.
    let expression = phrase(items.get(start..end)?)?;
    // Without a reference, only a request is a calculation: "add 12.5, 17 and 21.5".
    let requests =
        items[start].is(&["add", "divide", "split", "share", "multiply", "subtract", "take", "sum", "suma", "divide"]);
    let has_operation = expression.contains(['+', '-', '*', '/', '^']);
    let corrects = tokens.iter().any(|token| matches!(&**token, "meant" | "mean"));
    (has_operation && (refers || requests || corrects || is_math(&items))).then_some(expression)
}

fn starts_with_question(text: &str) -> bool {
    let utterance = Utterance::new(text);
    matches!(utterance.word(0), "what" | "whats" | "how" | "and" | "so" | "cuanto")
}

/// Words after "the" that name no stated number.
const NOT_NAMES: [&str; 24] = [
    "first",
    "second",
    "third",
    "last",
    "two",
    "three",
    "result",
    "total",
    "sum",
    "amount",
    "answer",
    "difference",
    "average",
    "same",
    "other",
    "ratio",
    "product",
    "square",
    "percentage",
    "half",
    "mean",
    "root",
    "number",
    "numbers",
];

/// Whether words name an operation that nothing else means.
fn is_math(items: &[Item]) -> bool {
    items
        .iter()
        .any(|item| item.is(&["root", "sqrt", "squared", "cubed", "times", "percent", "percentage", "twice", "triple"]))
}

/// Returns the calculation for "by how much?" and for "how much is that together?"
fn of_last_numbers(tokens: &[String], numbers: &Numbers<'_>) -> Option<String> {
    let words = tokens.iter().map(String::as_str).filter(|word| !FILLERS.contains(word) && *word != ",");
    let words: Vec<&str> = words.collect();
    let difference = |one: &str, other: &str| {
        let both = Item::Group(vec![one.to_owned(), other.to_owned()]);
        phrase(&[Item::Word("difference".to_owned()), Item::Word("of".to_owned()), both])
    };
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
    let is_total =
        |word: &&str| matches!(*word, "together" | "altogether" | "total" | "combined" | "everything" | "sum");
    let only_total = words.iter().all(|word| {
        is_total(word) || PRONOUNS.contains(word) || matches!(*word, "those" | "they" | "all" | "in" | "of" | "both")
    });
    if !words.iter().any(is_total) || !only_total {
        return None;
    }
    match numbers.texts.iter().find(|text| plain_numbers(text).len() > 1) {
        Some(text) => total_of(text),
        None => numbers.groups.iter().find(|group| group.len() > 1).map(|group| group.join("+")),
    }
}

/// Returns the total of the numbers of a text: their sum, or the product of a price and a count: "a ticket costs 38 euros and there are 6
/// of us".
fn total_of(text: &str) -> Option<String> {
    const MONEY: [&str; 12] =
        ["euros", "euro", "eur", "dollars", "dollar", "usd", "pounds", "pound", "gbp", "pesos", "cents", "quid"];
    let spaced = text.replace('€', " euros ").replace('$', " dollars ").replace('£', " pounds ");
    let (tokens, numbers) = (tokens(&spaced), plain_numbers(&spaced));
    let is_money = |number: &&String| {
        (0..tokens.len()).any(|at| {
            let before = at.checked_sub(1).and_then(|before| tokens.get(before));
            let follows = tokens.get(at + 1).is_some_and(|next| MONEY.contains(&next.as_str()));
            tokens[at] == **number && (follows || before.is_some_and(|word| MONEY.contains(&word.as_str())))
        })
    };
    let prices = numbers.iter().filter(is_money).count();
    let is_each = tokens.iter().any(|token| matches!(&**token, "each" | "apiece" | "per" | "every"));
    match numbers.len() {
        2 if prices == 1 || is_each => Some(numbers.join("*")),
        count if prices == count || prices == 0 && !is_each => Some(numbers.join("+")),
        _ => None,
    }
}

/// Returns the total for "and the total with the tip?" after a share was calculated: "(12.5/100*186.4)".
fn total_with_share(tokens: &[String], known: &[Calculation]) -> Option<String> {
    let has = |known: &[&str]| tokens.iter().any(|token| known.contains(&token.as_str()));
    let asks = has(&["total", "altogether", "all"])
        && has(&["with", "including", "incl", "plus", "con"])
        && has(&["tip", "tax", "vat", "service", "it", "that", "propina", "iva"]);
    let expression = known.last().filter(|_| asks && !tokens.iter().any(|token| is_number(token)))?;
    let whole = expression.expression.trim_matches(['(', ')']).split_once("/100*")?.1;
    whole.parse::<f64>().ok()?;
    Some(format!("{whole}+{}", expression.result))
}

/// Parses a calculation that all items belong to.
fn phrase(items: &[Item]) -> Option<String> {
    let position = |known: &[&str]| items.iter().position(|item| item.is(known));
    let at = |range: &[Item]| operand(range);
    let first = items.first()?;
    let rest = &items[1..];
    if first.is(&["take", "knock", "subtract", "deduct", "remove", "resta"]) {
        // "Take 19% off that", "take off 19%", "subtract 12 from the first one"
        let rest = if rest.first()?.is(&["off", "away"]) { &rest[1..] } else { rest };
        let split = rest.iter().position(|item| item.is(&["off", "from", "a", "away"]));
        let (less, whole) = match split {
            Some(split) if split + 1 < rest.len() => (&rest[..split], at(&rest[split + 1..])?),
            _ => return None,
        };
        return changed(&whole, '-', less);
    }
    if first.is(&["add", "sum", "suma"]) {
        if let Some(to) = rest.iter().position(|item| item.is(&["to", "a"])) {
            return changed(&at(&rest[to + 1..])?, '+', &rest[..to]);
        }
        return sum(rest);
    }
    if first.is(&["divide", "split", "share", "divided"]) {
        let by = rest.iter().position(|item| item.is(&["by", "between", "among", "into", "entre", "with", "over"]))?;
        return Some(format!("{}/{}", grouped(&at(&rest[..by])?), grouped(&at(&rest[by + 1..])?)));
    }
    if first.is(&["multiply", "multiplica"]) {
        let by = rest.iter().position(|item| item.is(&["by", "with", "times", "por"]))?;
        return Some(format!("{}*{}", grouped(&at(&rest[..by])?), grouped(&at(&rest[by + 1..])?)));
    }
    if first.is(&["difference", "diferencia"]) {
        let (one, other) = two(&rest[1..])?;
        let is_larger = one.parse::<f64>().ok()? >= other.parse::<f64>().ok()?;
        return Some(if is_larger { format!("{one}-{other}") } else { format!("{other}-{one}") });
    }
    if first.is(&["average", "mean", "promedio", "media"]) {
        let of = rest.get(1..)?;
        if let [Item::Group(group)] = of {
            return Some(format!("({})/{}", group.join("+"), group.len()));
        }
        let (one, other) = two(of)?;
        return Some(format!("({one}+{other})/2"));
    }
    if first.is(&["ratio"]) {
        let (one, other) = two(rest.get(1..)?)?;
        return Some(format!("{one}/{other}"));
    }
    if first.is(&["total", "product"]) && rest.first().is_some_and(|item| item.is(&["of"])) {
        let (one, other) = two(rest.get(1..)?)?;
        let sign = if first.is(&["total"]) { '+' } else { '*' };
        return Some(format!("{one}{sign}{other}"));
    }
    // "do the last two add up to", "the last two add up to"
    if let Some(add) = position(&["add"]) {
        let subject = if first.is(&["do", "does", "did"]) { &items[1..add] } else { &items[..add] };
        let is_sum = items[add + 1..].iter().all(|item| item.is(&["up", "to", "together"]));
        return if is_sum { sum(subject) } else { None };
    }
    // "How much more is that than the first one?"
    if let Some(than) = position(&["than"])
        && first.is(&["more", "less", "bigger", "smaller", "higher", "lower"])
    {
        let is = rest.iter().position(|item| item.is(&["is", "was", "are"]))? + 1;
        let group = vec![at(items.get(is + 1..than)?)?, at(&items[than + 1..])?];
        return phrase(&[Item::Word("difference".to_owned()), Item::Word("of".to_owned()), Item::Group(group)]);
    }
    // "The second as a percentage of the first"
    if let Some(share) = position(&["percentage", "percent"])
        && let Some(as_word) = position(&["as", "como", "in"])
        && as_word < share
    {
        let whole = items.get(share + 2..)?;
        return Some(format!("{}/{}*100", at(&items[..as_word])?, at(whole)?));
    }
    if first.is(&["percentage", "percent", "which"]) {
        let of = position(&["of"])?;
        let is = items.iter().skip(of).position(|item| item.is(&["is", "are"]))? + of;
        return Some(format!("{}/{}*100", at(&items[is + 1..])?, at(&items[of + 1..is])?));
    }
    at(items)
}

/// Returns an expression in parentheses, unless it is a single number.
fn grouped(expression: &str) -> String {
    if expression.parse::<f64>().is_ok() { expression.to_owned() } else { format!("({expression})") }
}

/// Returns a number that is changed by an amount or a percentage.
fn changed(whole: &str, sign: char, by: &[Item]) -> Option<String> {
    let whole = grouped(whole);
    match by {
        [Item::Number(number), percent, ..] if percent.is(&["percent"]) => {
            let is_named = by.len() <= 3;
            is_named.then(|| format!("{whole}*(1{sign}{number}/100)"))
        }
        _ => Some(format!("{whole}{sign}{}", grouped(&operand(by)?))),
    }
}

/// Returns two numbers joined by "and", or the two that a reference means.
fn two(items: &[Item]) -> Option<(String, String)> {
    match items {
        [Item::Group(group)] => match &group[..] {
            [one, other] => Some((one.clone(), other.clone())),
            _ => None,
        },
        _ => {
            let and = items.iter().position(|item| item.is(&["and", "y", "to", "from"]))?;
            Some((operand(&items[..and])?, operand(&items[and + 1..])?))
        }
    }
}

/// Returns the sum of a list of numbers.
fn sum(items: &[Item]) -> Option<String> {
    if let [Item::Group(group)] = items {
        return Some(group.join("+"));
    }
    let parts = items.split(|item| item.is(&["and", "y", ",", "plus"])).filter(|part| !part.is_empty());
    let parts: Vec<String> = parts.map(operand).collect::<Option<_>>()?;
    (parts.len() > 1).then(|| parts.join("+"))
}

/// Parses an operand that all items belong to: a number, a share, a multiple, or several of them with operations between.
fn operand(items: &[Item]) -> Option<String> {
    let items = match items.first()? {
        first if first.is(&["the", "a", "an", "el", "la"]) => &items[1..],
        _ => items,
    };
    let (first, rest) = items.split_first()?;
    let of = |rest: &[Item]| {
        let skipped = rest.iter().take_while(|item| item.is(&["of", "de", "the", "on"])).count();
        operand(&rest[skipped..])
    };
    if let Item::Number(number) = first {
        let Some((next, after)) = rest.split_first() else { return Some(number.clone()) };
        if next.is(&["percent"]) {
            // "A 12.5% tip on that", "19% off that"
            let name = usize::from(
                after.first().is_some_and(|item| matches!(item, Item::Word(_)) && !item.is(&["of", "on", "off", "de"])),
            );
            let after = &after[name..];
            let (preposition, whole) = after.split_first()?;
            let whole = grouped(&operand(whole)?);
            return match () {
                () if preposition.is(&["off"]) => Some(format!("{whole}*(1-{number}/100)")),
                () if preposition.is(&["of", "on", "de"]) => Some(format!("{number}/100*{whole}")),
                () => None,
            };
        }
        if next.is(&["euros", "euro", "eur", "dollars", "pounds"]) {
            let joined: Vec<Item> = std::iter::once(first.clone()).chain(after.iter().cloned()).collect();
            return operand(&joined);
        }
        if next.is(&["squared"]) && after.is_empty() {
            return Some(format!("{number}^2"));
        }
        if next.is(&["cubed"]) && after.is_empty() {
            return Some(format!("{number}^3"));
        }
        let (sign, skipped) = match () {
            () if next.is(&["plus", "+", "mas"]) => ('+', 0),
            () if next.is(&["minus", "less", "-", "menos"]) => ('-', 0),
            () if next.is(&["times", "x", "*", "×", "por"]) => ('*', 0),
            () if next.is(&["over", "/", "÷", "entre"]) => ('/', 0),
            () if next.is(&["multiplied"]) => ('*', 1),
            () if next.is(&["divided", "split"]) => ('/', 1),
            () => return None,
        };
        if let [Item::Number(percent), word] = after
            && word.is(&["percent"])
            && matches!(sign, '+' | '-')
        {
            return Some(format!("{number}*(1{sign}{percent}/100)"));
        }
        return Some(format!("{number}{sign}{}", operand(after.get(skipped..)?)?));
    }
    match () {
        () if first.is(&["half", "mitad", "halve"]) => Some(format!("{}/2", grouped(&of(rest)?))),
        () if first.is(&["third"]) => Some(format!("{}/3", grouped(&of(rest)?))),
        () if first.is(&["quarter", "fourth"]) => Some(format!("{}/4", grouped(&of(rest)?))),
        () if first.is(&["fifth"]) => Some(format!("{}/5", grouped(&of(rest)?))),
        () if first.is(&["tenth"]) => Some(format!("{}/10", grouped(&of(rest)?))),
        () if first.is(&["twice", "double", "doble"]) => Some(format!("2*{}", grouped(&of(rest)?))),
        () if first.is(&["triple", "thrice"]) => Some(format!("3*{}", grouped(&of(rest)?))),
        () if first.is(&["square", "cube"]) && matches!(rest, [Item::Number(_)]) => {
            Some(format!("{}^{}", operand(rest)?, if first.is(&["square"]) { 2 } else { 3 }))
        }
        () if first.is(&["square"]) && rest.first()?.is(&["root"]) => Some(format!("({})^0.5", of(&rest[1..])?)),
        () if first.is(&["root", "sqrt"]) => Some(format!("({})^0.5", of(rest)?)),
        () => None,
    }
}

/// Returns the last calculation with one number replaced: "no, between 5", "ok, by 8 then", "and 60%?", or with its two numbers
/// swapped: "and the other way round?"
fn corrected(text: &str, earlier: &[ChatMessage], known: &[Calculation]) -> Option<String> {
    const OPENINGS: [&str; 24] = [
        "no", "oops", "whoops", "ok", "okay", "sorry", "and", "then", "what", "how", "about", "make", "it", "actually",
        "wait", "i", "meant", "mean", "rather", "so", "hm", "y", "perdon", "if",
    ];
    let calculation = last_expression(earlier).or_else(|| known.last().map(|known| known.expression.clone()))?;
    let tokens = tokens(text);
    let words: Vec<&str> = tokens.iter().map(String::as_str).filter(|token| *token != ",").collect();
    if words.is_empty() || words.len() > MAX_WORDS {
        return None;
    }
    let other_way = words.windows(3).any(|three| matches!(three, ["other", "way", "round" | "around"]))
        || matches!(words[..], ["reversed"] | ["and", "reversed"] | ["al", "reves"] | ["y", "al", "reves"]);
    if other_way {
        let plain = calculation.trim_matches(['(', ')']);
        let at = plain.find(['/', '-'])?;
        let (one, rest) = plain.split_at(at);
        let (sign, other) = rest.split_at(1);
        let (other, tail) = other.strip_suffix("*100").map_or((other, ""), |other| (other, "*100"));
        let are_numbers = [one, other].iter().all(|number| number.parse::<f64>().is_ok());
        return are_numbers.then(|| format!("{other}{sign}{one}{tail}"));
    }
    let start = words.iter().position(|word| !OPENINGS.contains(word))?;
    let has_opening = start > 0;
    let number = |at: usize| {
        let word = words.get(at)?;
        if is_number(word) { Some((*word).to_owned()) } else { spelled(word).map(str::to_owned) }
    };
    // "Leave out the 14"
    if let ["leave" | "without" | "drop" | "skip", rest @ ..] = &words[start..] {
        let out = rest.iter().find(|word| is_number(word)).filter(|_| rest.len() <= 3)?;
        let parts: Vec<&str> = calculation.split('+').collect();
        let left: Vec<&str> = parts.iter().copied().filter(|part| part != out).collect();
        let is_sum = parts.iter().all(|part| part.parse::<f64>().is_ok());
        return (is_sum && left.len() > 1 && left.len() + 1 == parts.len()).then(|| left.join("+"));
    }
    // "What is 84 as a percentage of 560?", "and 126?"
    if has_opening && words.len() == start + 1 && calculation.ends_with("*100") {
        let (part, whole) = calculation.split_once('/')?;
        part.parse::<f64>().ok()?;
        return Some(format!("{}/{whole}", number(start)?));
    }
    let means = |at: usize| matches!(words[at..], ["i", "meant" | "mean"] | ["meant"]);
    let is_short_rest = |at: usize| {
        means(at)
            || {
                words[at..].iter().take(2).all(|word| UNITS.contains(word)) && words.len() <= at + 2
        // "No, between 5, Marta isn't paying"
        || text.split(',').filter(|part| number_in(part).is_some()).count() == 1 && words[at..].len() <= 5 && text.matches(',').count() >= 2
            }
    };
    let replaced_last = |number: &str| {
        let at = calculation.rfind(['/', '*'])?;
        calculation[at + 1..].parse::<f64>().ok()?;
        Some(format!("{}{number}", &calculation[..=at]))
    };
    if words[start] == "of" && words.len() == start + 2 && has_opening {
        let (share, _) = calculation.rsplit_once("/100*")?;
        return Some(format!(
            "{share}/100*{}{}",
            number(start + 1)?,
            if calculation.ends_with(')') { ")" } else { "" }
        ));
    }
    // "No, 6"
    let corrects = matches!(words[0], "no" | "sorry" | "oops" | "wait" | "actually");
    if corrects && words.len() == start + 1 {
        return replaced_last(&number(start)?);
    }
    match words[start] {
        "by" | "between" | "among" | "into" | "entre" => {
            let value = number(start + 1).filter(|_| has_opening || words.len() <= 3)?;
            is_short_rest(start + 2).then(|| replaced_last(&value)).flatten()
        }
        _ => {
            let value = number(start).filter(|_| has_opening && words.get(start + 1) == Some(&"percent"))?;
            let is_all =
                words[start + 2..].iter().all(|word| UNITS.contains(word) || matches!(*word, "off" | "tip" | "vat"));
            let end = calculation.find("/100").filter(|_| is_all)?;
            let begin = calculation[..end].rfind(|c: char| !(c.is_ascii_digit() || c == '.')).map_or(0, |at| at + 1);
            (begin < end).then(|| format!("{}{value}{}", &calculation[..begin], &calculation[end..]))
        }
    }
}

fn number_in(text: &str) -> Option<String> {
    tokens(text).into_iter().find(|token| is_number(token) || spelled(token).is_some())
}

/// Returns the expression of the last call of the calculator, whether it succeeded or not.
fn last_expression(earlier: &[ChatMessage]) -> Option<String> {
    let call = earlier
        .iter()
        .rev()
        .flat_map(ChatMessage::tool_calls)
        .find(|call| call.name == crate::calculation::CALCULATOR)?;
    let arguments: threadkeep::Value = call.arguments.read().ok()?;
    arguments["expression"].as_str().map(str::to_owned)
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
            ("add the two eggs", None),
            ("add milk and bread to it", None),
            ("the difference between the first house and the second", None),
            ("what was that?", None),
            ("is that it", None),
            ("take the bread off the list", None),
            ("square it", Some("30^2")),
            ("divide that plus 6 by 4", Some("(30+6)/4")),
            ("by how much?", Some("30-24")),
            ("My wage is 2000. what's 10% of my wage?", Some("10/100*2000")),
            ("add the fee of 5 to that", Some("30+5")),
            ("take 20% off", Some("30*(1-20/100)")),
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
    fn numbers_of_the_last_calculation_are_replaced() {
        for (expression, text, expected) in [
            ("90/4", "no, between 5", Some("90/5")),
            ("90/4", "ok, by 6 then", Some("90/6")),
            ("90/4", "no, by three, Leo is not coming", Some("90/3")),
            ("(40/100*51)", "and 60%?", Some("(60/100*51)")),
            ("144/480*100", "and the other way round?", Some("480/144*100")),
            ("90/4", "oops, by 6 I meant", Some("90/6")),
            ("84/560*100", "and 126?", Some("126/560*100")),
            ("14+27+33", "leave out the 14", Some("27+33")),
            ("(12/100*600)", "and of 900?", Some("(12/100*900)")),
            ("90/4", "no, 6", Some("90/6")),
            ("90/4", "no, at 5", None),
            ("90/4", "and 60%?", None),
        ] {
            let earlier = conversation(&[(expression, "1")]);
            assert_eq!(corrected(text, &earlier, &calculations(&earlier)).as_deref(), expected, "{text}");
        }
    }
}
