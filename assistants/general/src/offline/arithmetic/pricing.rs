//! Prices and counts: "a box costs 11.40 and we need 45 of them", "6 chairs at 89 euros each", "how much is that per box?".

use super::super::results::Calculation;
use super::FILLERS;
use super::numbers::{PRONOUNS, is_number, plain_numbers, spelled, tokens};
use super::steps::stem;

pub(super) const MONEY: [&str; 12] =
    ["euros", "euro", "eur", "dollars", "dollar", "usd", "pounds", "pound", "gbp", "pesos", "cents", "quid"];
const PEOPLE: [&str; 8] = ["person", "people", "head", "us", "guest", "friend", "personas", "persona"];

/// Replaces the signs of currencies by their names.
pub(super) fn with_currencies(text: &str) -> String {
    text.replace('€', " euros ").replace('$', " dollars ").replace('£', " pounds ")
}

/// The words and numbers of a text.
struct Priced {
    tokens: Vec<String>,
}

impl Priced {
    fn new(text: &str) -> Self {
        Self { tokens: tokens(&with_currencies(text)) }
    }

    fn word(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", String::as_str)
    }

    fn before(&self, at: usize) -> &str {
        at.checked_sub(1).map_or("", |before| self.word(before))
    }

    fn any(&self, number: &str, is: impl Fn(&Self, usize) -> bool) -> bool {
        (0..self.tokens.len()).any(|at| self.tokens[at] == number && is(self, at))
    }

    /// Whether a currency is beside a number.
    fn is_money(&self, at: usize) -> bool {
        MONEY.contains(&self.word(at + 1)) || MONEY.contains(&self.before(at))
    }

    fn is_price(&self, at: usize) -> bool {
        self.is_money(at) || matches!(self.before(at), "cost" | "costs" | "costing" | "at")
    }

    /// Whether a number is the amount of one thing or one period: "18.50 each", "175 a month".
    fn is_rate(&self, at: usize) -> bool {
        matches!(self.word(at + 1), "a" | "an" | "per" | "each" | "apiece" | "every")
    }

    /// Whether a number counts what is bought, or people: "45 of them", "we are 5", "6 chairs".
    fn is_count(&self, at: usize) -> bool {
        let of_them =
            self.word(at + 1) == "of" && matches!(self.word(at + 2), "them" | "those" | "these" | "us" | "it");
        let follows = matches!(
            self.before(at),
            "are" | "need" | "want" | "buy" | "bought" | "order" | "ordered" | "get" | "take" | "took" | "book"
        );
        let next = self.word(at + 1);
        let names_things = next.len() > 3 && next.ends_with('s') && !MONEY.contains(&next);
        of_them || follows || names_things || PEOPLE.contains(&next)
    }

    fn is_each(&self) -> bool {
        self.tokens.iter().any(|token| matches!(&**token, "each" | "apiece" | "per" | "every"))
    }
}

/// Returns the product of the price and the count in a text.
fn product(text: &str) -> Option<String> {
    let (priced, numbers) = (Priced::new(text), plain_numbers(text));
    let [one, other] = &numbers[..] else { return None };
    let is_price = |number: &str| priced.any(number, Priced::is_price);
    let is_count = |number: &str| priced.any(number, Priced::is_count);
    let price = if is_price(one) { one } else { other };
    let count = if price == one { other } else { one };
    let is_one_price = is_price(price) && !is_price(count);
    let has_currency = priced.any(price, Priced::is_money);
    (is_one_price && (is_count(count) || has_currency) || priced.is_each()).then(|| numbers.join("*"))
}

/// Returns the total of the numbers of a text: their sum, or the product of a price and a count: "a ticket costs 38 euros and there are 6
/// of us".
pub(super) fn total_of(text: &str) -> Option<String> {
    if let Some(product) = product(text) {
        return Some(product);
    }
    let (priced, numbers) = (Priced::new(text), plain_numbers(text));
    let with_currency = numbers.iter().filter(|number| priced.any(number, Priced::is_money)).count();
    let is_sum = with_currency == numbers.len() || with_currency == 0 && !priced.is_each();
    (numbers.len() > 1 && is_sum).then(|| numbers.join("+"))
}

/// Returns the product for "what do they cost?" after a price and a count.
pub(super) fn cost(tokens: &[String], texts: &[String]) -> Option<String> {
    const WORDS: [&str; 17] = [
        "do",
        "does",
        "will",
        "they",
        "it",
        "those",
        "these",
        "all",
        "to",
        "for",
        "i",
        "we",
        "have",
        "me",
        "in",
        "total",
        "altogether",
    ];
    let has = |known: &[&str]| tokens.iter().any(|token| known.contains(&token.as_str()));
    let is_cost = |token: &String| matches!(&**token, "cost" | "costs" | "pay");
    let is_only = tokens.iter().all(|token| {
        let word = token.as_str();
        is_cost(token) || WORDS.contains(&word) || FILLERS.contains(&word) || PRONOUNS.contains(&word)
    });
    let asks = has(&["what", "much", "whats"]) && tokens.iter().any(is_cost) && is_only;
    texts.iter().find(|text| !text.trim().is_empty()).filter(|_| asks).and_then(|text| product(text))
}

/// Returns the quotient for "how much is that per box?" after a result: the count was stated with one of the calculations.
pub(super) fn per_piece(tokens: &[String], last: &str, known: &[Calculation]) -> Option<String> {
    const WORDS: [&str; 14] =
        ["per", "each", "apiece", "for", "of", "us", "do", "does", "we", "i", "pay", "cost", "come", "to"];
    let words: Vec<&str> =
        tokens.iter().map(String::as_str).filter(|word| !FILLERS.contains(word) && !PRONOUNS.contains(word)).collect();
    let at = words.iter().position(|word| matches!(*word, "per" | "each" | "apiece"))?;
    let noun = words.get(at + 1).filter(|noun| !WORDS.contains(noun) || **noun == "us").copied();
    let noun = if words[at..].contains(&"us") { Some("us") } else { noun };
    if !words.iter().all(|word| WORDS.contains(word) || noun == Some(*word)) {
        return None;
    }
    let count = known.iter().rev().find_map(|calculation| count_in(&calculation.asked, noun))?;
    Some(format!("{last}/{count}"))
}

/// Returns the share of one person, if the message says how many there are: "the dinner was 245 and there's 7 of us, how much each?",
/// or after a result, "and each, there's 4 of us".
pub(super) fn per_head(tokens: &[String], last: Option<&str>) -> Option<String> {
    let word = |at: usize| tokens.get(at).map_or("", String::as_str);
    let has = |known: &[&str]| tokens.iter().any(|token| known.contains(&token.as_str()));
    let asks = (0..tokens.len()).any(|at| match word(at) {
        "each" | "apiece" => at.checked_sub(1).is_none_or(|before| !is_number(word(before))),
        "a" => word(at + 1) == "head",
        "per" | "por" => PEOPLE.contains(&word(at + 1)) || word(at + 1) == "cabeza",
        "cada" => matches!(word(at + 1), "uno" | "una"),
        // "84 split between 6 of us"
        "split" | "shared" | "divided" => matches!(word(at + 1), "between" | "among" | "by"),
        word => matches!(word, "tocamos" | "toca"),
    });
    let is_other = has(&["total", "altogether", "percent", "without", "except", "plus", "minus", "tip", "propina"]);
    if !asks || is_other {
        return None;
    }
    let counts_people = |at: usize| {
        let of_people = word(at + 1) == "of" && matches!(word(at + 2), "us" | "them");
        let before = at.checked_sub(1).map_or("", word);
        of_people
            || PEOPLE.contains(&word(at + 1))
            || matches!(word(at + 1), "friends" | "guests" | "amigos")
            || matches!(before, "are" | "were" | "somos" | "between" | "entre" | "among")
    };
    let number = |at: usize| if is_number(word(at)) { Some(word(at)) } else { spelled(word(at)) };
    let numbers: Vec<usize> = (0..tokens.len()).filter(|at| number(*at).is_some()).collect();
    let [count] = numbers.iter().copied().filter(|at| counts_people(*at)).collect::<Vec<_>>()[..] else { return None };
    let amounts: Vec<&str> = numbers.iter().filter(|at| **at != count).filter_map(|at| number(*at)).collect();
    let whole = match &amounts[..] {
        [] => last?,
        [amount] => amount,
        _ => return None,
    };
    Some(format!("{whole}/{}", number(count)?))
}

/// Returns the product for "27 boxes at 13.40 each please", "can you do 37 hours at 14 an hour": a request without a question.
pub(super) fn requested_product(text: &str) -> Option<String> {
    let folded = tokens(text);
    let has = |known: &[&str]| folded.iter().any(|token| known.contains(&token.as_str()));
    let can_you =
        folded.windows(2).any(|pair| matches!(&*pair[0], "can" | "could") && matches!(&*pair[1], "you" | "u"));
    let requests = has(&["pls", "please", "plz"]) || can_you && has(&["do", "calculate", "work"]);
    // Another verb may ask for something else: "book 2 rooms at 80 each please".
    let is_plain = folded.iter().take_while(|token| !is_number(token)).all(|token| {
        FILLERS.contains(&token.as_str())
            || matches!(&**token, "hey" | "hi" | "hiya" | "u" | "do" | "me" | "for" | "pls")
    });
    let is_total = has(&["at"]) && !has(&["percent", "plus", "minus", "not", "without"]);
    (requests && is_plain && is_total).then(|| product(text)).flatten()
}

/// Returns the total for "1350 with 10 percent on top, total please", or after an amount, "and if he puts 20% on top of that?"
pub(super) fn with_percent_on_top(tokens: &[String], last: Option<&str>) -> Option<String> {
    let word = |at: usize| tokens.get(at).map_or("", String::as_str);
    let has = |known: &[&str]| tokens.iter().any(|token| known.contains(&token.as_str()));
    let numbers: Vec<usize> = (0..tokens.len()).filter(|at| is_number(word(*at))).collect();
    let (shares, amounts): (Vec<usize>, Vec<usize>) = numbers.into_iter().partition(|at| word(at + 1) == "percent");
    let (share, amount) = match (&shares[..], &amounts[..]) {
        ([share], [amount]) => (share, word(*amount)),
        ([share], []) if has(&["that", "it"]) && matches!(word(0), "and" | "what" | "whats" | "how") => (share, last?),
        _ => return None,
    };
    let is_on_top = tokens.windows(2).any(|pair| pair[0] == "on" && pair[1] == "top");
    let asks = has(&["total", "whats", "what", "how", "please", "pls"]) || word(0) == "and" && has(&["if"]);
    (is_on_top && asks).then(|| format!("{amount}*(1+{}/100)", word(*share)))
}

/// Returns the number of a text that is a price, and the one that counts what is bought, if each is clear.
pub(super) fn price_and_count(text: &str) -> (Option<String>, Option<String>) {
    let (priced, numbers) = (Priced::new(text), plain_numbers(text));
    let is_price = |number: &&String| priced.any(number, |priced, at| priced.is_price(at) || priced.is_rate(at));
    let (prices, others): (Vec<&String>, Vec<&String>) = numbers.iter().partition(is_price);
    let only = |numbers: &[&String]| match numbers {
        [only] => Some((*only).clone()),
        _ => None,
    };
    (only(&prices), only(&others).filter(|_| prices.len() == 1))
}

/// Returns the number of things with a name in a text: "6 chairs"; "45 of them" if the text names them.
fn count_in(text: &str, noun: Option<&str>) -> Option<String> {
    let priced = Priced::new(text);
    let is_person = noun.is_some_and(|noun| PEOPLE.contains(&noun));
    let is_same =
        |word: &str| noun.is_none_or(|noun| stem(word) == stem(noun)) || is_person && PEOPLE.contains(&&*stem(word));
    let is_named = priced.tokens.iter().any(|word| is_same(word));
    let counts = |at: &usize| {
        let next = priced.word(at + 1);
        let is_direct = !next.is_empty() && !MONEY.contains(&next) && is_same(next) && noun.is_some();
        let is_pronoun = next == "of" && (is_named || is_person && priced.word(at + 2) == "us");
        let is_plain = noun.is_none() || is_person && matches!(priced.before(*at), "are" | "between" | "by");
        is_number(&priced.tokens[*at])
            && (is_direct || (is_pronoun || is_plain) && priced.is_count(*at) || is_person && is_plain)
    };
    let mut found = (0..priced.tokens.len()).filter(counts);
    let only = found.next().filter(|_| found.next().is_none())?;
    Some(priced.tokens[only].clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_products_of_a_price_and_a_count() {
        for (text, expected) in [
            ("A mug costs 4.20 and we need 10 of them", Some("4.20*10")),
            ("8 stools at 45 euros each", Some("8*45")),
            ("8 stools at 45 each", Some("8*45")),
            ("The gas costs 70 and the water is 30", Some("70+30")),
            ("A seat is 12 euros and we are 5", Some("12*5")),
            ("The gas is 70 euros and the water 30 euros", Some("70+30")),
            ("2 adults at 12 euros and 3 children at 6 euros", None),
        ] {
            assert_eq!(total_of(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn what_they_cost_is_a_product() {
        let asked = |text: &str, question: &str| cost(&tokens(question), &[text.to_owned()]);
        assert_eq!(asked("8 stools at 45 euros each", "what do they cost?").as_deref(), Some("8*45"));
        assert_eq!(asked("8 stools at 45 euros each", "what does one cost?"), None);
        assert_eq!(asked("The gas costs 70 and the water is 30", "what do they cost?"), None);
    }

    #[test]
    fn shares_of_people_are_calculated() {
        for (text, last, expected) in [
            ("and each, theres 4 of us", Some("60"), Some("60/4")),
            ("and each, theres 4 of us", None, None),
            ("the dinner was 240 and we are 6, how much each?", None, Some("240/6")),
            ("somos 7 y la cena salió por 245 euros, a cuánto tocamos?", None, Some("245/7")),
            ("dinner came to 180 and there were six of us, whats that a head", None, Some("180/6")),
            ("6 people at 12 each, what's that", None, None),
            ("there are 6 of us and each pays 12, what's the total?", None, None),
            ("I gave each of them a book", Some("60"), None),
        ] {
            assert_eq!(per_head(&tokens(text), last).as_deref(), expected, "{text}");
        }
        let on_top = |text: &str| with_percent_on_top(&tokens(text), Some("300"));
        assert_eq!(on_top("and if he puts 20% vat on top of that?").as_deref(), Some("300*(1+20/100)"));
        assert_eq!(on_top("same 500 but with 10 percent on top, total pls").as_deref(), Some("500*(1+10/100)"));
        assert_eq!(on_top("they want 500 and 10% on top"), None);
    }

    #[test]
    fn results_are_divided_by_the_stated_count() {
        let per = |asked: &str, text: &str| {
            let known = Calculation { asked: asked.to_owned(), expression: String::new(), result: String::new() };
            per_piece(&tokens(text), "50", &[known])
        };
        let mugs = "A mug costs 4 and we need 10 of them, what's the total?";
        assert_eq!(per(mugs, "how much is that per mug").as_deref(), Some("50/10"));
        assert_eq!(per("8 glasses at 5 each, what do they cost?", "and per glass?").as_deref(), Some("50/8"));
        assert_eq!(per("Split 90 between 6 people", "how much is that per person?").as_deref(), Some("50/6"));
        assert_eq!(per(mugs, "how much is that per week"), None);
        assert_eq!(per(mugs, "how much does the plumber charge per mug"), None);
    }
}
