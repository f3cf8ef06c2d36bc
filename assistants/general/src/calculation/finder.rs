//! Finds calculations in messages: "(800-640)/640*100", "3% of 875", "640 plus 20% VAT", "la mitad de 90".

use std::ops::Range;

/// A token of a message: a number, an operator, or a word between them.
#[derive(Clone, Debug, PartialEq)]
enum Token {
    Number(String),
    Operator(char),
    Open,
    Close,
    Percent,
    /// "of", which multiplies after a percentage or a fraction.
    Of,
    Half,
    /// A currency, an article or "by", which may appear between an operator and a number.
    Ignored,
    Other,
}

struct PlacedToken {
    token: Token,
    span: Range<usize>,
}

/// Finds the first calculation in a message. Returns its byte range in the text, and the expression for the calculator.
pub(crate) fn find(text: &str) -> Option<(Range<usize>, String)> {
    let tokens: Vec<PlacedToken> = tokens(text).into_iter().filter(|placed| placed.token != Token::Ignored).collect();
    if let Some(found) = aggregate(text, &tokens) {
        return Some(found);
    }
    let longest =
        (0..tokens.len()).filter_map(|start| expression_at(&tokens, start)).max_by_key(|(range, _)| range.len());
    let (range, expression) = longest?;
    let span = tokens[range.start].span.start..tokens[range.end - 1].span.end;
    is_calculation(text, &span, &tokens[range]).then_some((span, expression))
}

/// Returns the expression for a text that is a calculation as a whole: "30 plus 20 plus 10%".
pub(crate) fn whole(text: &str) -> Option<String> {
    let tokens: Vec<PlacedToken> = tokens(text).into_iter().filter(|placed| placed.token != Token::Ignored).collect();
    let (range, expression) = expression_at(&tokens, 0)?;
    (range.end == tokens.len()).then_some(expression)
}

/// Whether tokens are a calculation rather than a date, a range, a phone number, a size or a time of day: "10-12", "20/40", "2x4",
/// "a las 5 menos 10". Ambiguous signs and words count only if the message asks for the result directly before or after them.
fn is_calculation(text: &str, span: &Range<usize>, tokens: &[PlacedToken]) -> bool {
    let (before, after) = (text[..span.start].to_lowercase(), text[span.end..].trim_start());
    let after = ["pls", "please", "plz"].iter().find_map(|polite| after.strip_prefix(polite)).unwrap_or(after);
    let is_filler = |word: &&str| {
        matches!(
            *word,
            "" | "la" | "el" | "the" | "a" | "and" | "y" | "ok" | "then" | "now" | "please" | "pls" | "entonces"
        )
    };
    let last_word = before.rsplit(|c: char| !c.is_alphanumeric()).find(|word| !is_filler(word));
    let is_first = last_word.is_none();
    let is_last = after.chars().next().is_none_or(|next| matches!(next, '?' | '=' | '.' | ',' | '!'));
    let is_asked_here = is_last && last_word.is_none_or(|word| INTRODUCING.contains(&word));
    let written = |placed: &PlacedToken| text[placed.span.clone()].to_lowercase();
    let is_operation =
        |placed: &&PlacedToken| matches!(placed.token, Token::Operator(_) | Token::Percent | Token::Half);
    let is_clear = tokens.iter().filter(is_operation).any(|placed| CLEAR.contains(&written(placed).as_str()))
        || tokens.iter().any(|placed| placed.token == Token::Open);
    // "if two more come along, 12*29?"
    let is_apart = text[..span.start].trim_end().ends_with([',', ':', ';', '?', '.']);
    let is_product = tokens.iter().filter(is_operation).all(|placed| matches!(&*written(placed), "*" | "×" | "÷"));
    match is_clear {
        true => is_first || is_asked_here || is_apart || is_product || asks(text),
        false => is_asked_here && (is_first || asks(text)) || is_last && is_apart && asks(text) && is_descent(tokens),
    }
}

/// Whether tokens subtract a number from a larger one, which a range of numbers does not: "1911-1889".
fn is_descent(tokens: &[PlacedToken]) -> bool {
    match tokens {
        [
            PlacedToken { token: Token::Number(one), .. },
            PlacedToken { token: Token::Operator('-'), .. },
            PlacedToken { token: Token::Number(other), .. },
        ] => one.parse::<f64>().is_ok_and(|one| other.parse::<f64>().is_ok_and(|other| one > other)),
        _ => false,
    }
}

/// Unambiguous signs and words for operations.
const CLEAR: [&str; 19] = [
    "+",
    "minus",
    "*",
    "×",
    "÷",
    "%",
    "plus",
    "times",
    "multiplied",
    "multiplicado",
    "divided",
    "dividido",
    "split",
    "percent",
    "pct",
    "porciento",
    "half",
    "mitad",
    "^",
];
/// Words directly before a calculation that ask for its result.
const INTRODUCING: [&str; 21] = [
    "is",
    "s",
    "whats",
    "wats",
    "wots",
    "so",
    "calculate",
    "compute",
    "solve",
    "out",
    "es",
    "son",
    "da",
    "calcula",
    "makes",
    "equals",
    "difference",
    "sum",
    "total",
    "diferencia",
    "suma",
];

/// Whether a message asks for something.
fn asks(text: &str) -> bool {
    const WORDS: [&str; 21] = [
        "what",
        "wats",
        "wots",
        "wot",
        "whats",
        "wat",
        "much",
        "many",
        "calculate",
        "compute",
        "solve",
        "work",
        "cuánto",
        "cuanto",
        "cuál",
        "cual",
        "calcula",
        "suma",
        "resta",
        "so",
        "add",
    ];
    let lower = text.to_lowercase();
    text.contains('?') || lower.split(|c: char| !c.is_alphanumeric()).any(|word| WORDS.contains(&word))
}

/// Finds "the average of 6.5 and 8", "i got 78 84 and 91 whats the average", "add up 3, 4 and 5".
fn aggregate(text: &str, tokens: &[PlacedToken]) -> Option<(Range<usize>, String)> {
    let folded = text.to_lowercase();
    let says = |words: &[&str]| folded.split(|c: char| !c.is_alphanumeric()).any(|word| words.contains(&word));
    let starts =
        ["average", "mean", "avg", "sum", "total", "media", "promedio"].iter().any(|word| folded.starts_with(word));
    if !starts && !asks(text) {
        return None;
    }
    let is_average = says(&["average", "mean", "avg", "promedio", "media"]);
    let is_sum = says(&["sum", "suma", "sumar", "sumame", "total"]) || folded.contains("add up");
    if !is_average && !is_sum || tokens.iter().any(|placed| matches!(placed.token, Token::Operator(_) | Token::Percent))
    {
        return None;
    }
    // The longest list of numbers with nothing between them except commas and "and".
    let mut best: Vec<&PlacedToken> = Vec::new();
    let mut list: Vec<&PlacedToken> = Vec::new();
    for placed in tokens {
        let follows = list.last().is_none_or(|last| is_list_gap(&text[last.span.end..placed.span.start]));
        match &placed.token {
            Token::Number(_) if follows => list.push(placed),
            Token::Number(_) => list = vec![placed],
            _ => {}
        }
        if list.len() > best.len() {
            best.clone_from(&list);
        }
    }
    let numbers: Vec<&str> = best
        .iter()
        .filter_map(|placed| if let Token::Number(number) = &placed.token { Some(number.as_str()) } else { None })
        .collect();
    let span = best.first()?.span.start..best.last()?.span.end;
    let sum = numbers.join("+");
    let expression = if is_average { format!("({sum})/{}", numbers.len()) } else { sum };
    (numbers.len() > 1).then_some((span, expression))
}

fn is_list_gap(gap: &str) -> bool {
    gap.split_whitespace().all(|word| matches!(word.trim_matches([',', ';']), "" | "and" | "y" | "e" | "&" | "n"))
}

/// Parses the longest calculation that starts at a token. Returns its tokens and the expression.
fn expression_at(tokens: &[PlacedToken], start: usize) -> Option<(Range<usize>, String)> {
    let mut parser = Parser { tokens, at: start, operations: 0 };
    let expression = parser.sequence(0)?;
    (parser.operations > 0).then_some((start..parser.at, expression))
}

struct Parser<'a> {
    tokens: &'a [PlacedToken],
    at: usize,
    operations: usize,
}

/// The maximum depth of parentheses.
const MAX_DEPTH: usize = 16;

impl Parser<'_> {
    fn token(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|placed| &placed.token)
    }

    /// Parses the longest sequence of operands with operators between them.
    fn sequence(&mut self, depth: usize) -> Option<String> {
        let mut expression = self.operand(depth)?;
        while let Some(Token::Operator(operator)) = self.token().cloned() {
            let before = self.at;
            self.at += 1;
            let Some(operand) = self.operand(depth) else {
                self.at = before;
                break;
            };
            self.operations += 1;
            expression = match operand.strip_suffix('%') {
                // "640 plus 20%" adds a percentage of the preceding result.
                Some(percent) if matches!(operator, '+' | '-') => format!("({expression})*(1{operator}{percent}/100)"),
                _ => format!("{expression}{operator}{operand}"),
            };
        }
        Some(expression)
    }

    /// Parses the rest of "3/8 of 720" after its first number.
    fn fraction_of(&mut self, numerator: &str, depth: usize) -> Option<String> {
        let at = |offset: usize| self.tokens.get(self.at + offset).map(|placed| &placed.token);
        let (Some(Token::Operator('/')), Some(Token::Number(denominator)), Some(Token::Of)) = (at(0), at(1), at(2))
        else {
            return None;
        };
        let (denominator, before) = (denominator.clone(), self.at);
        self.at += 3;
        let Some(whole) = self.operand(depth) else {
            self.at = before;
            return None;
        };
        self.operations += 2;
        Some(format!("({numerator}/{denominator}*{whole})"))
    }

    fn operand(&mut self, depth: usize) -> Option<String> {
        let operand = match self.token()?.clone() {
            Token::Number(number) => {
                self.at += 1;
                match self.fraction_of(&number, depth) {
                    Some(part) => return Some(part),
                    None => number,
                }
            }
            Token::Operator('-') if matches!(self.tokens.get(self.at + 1)?.token, Token::Number(_)) => {
                self.at += 1;
                format!("-{}", self.operand(depth)?)
            }
            Token::Half => {
                self.at += 1;
                if self.token() == Some(&Token::Of) {
                    self.at += 1;
                }
                let whole = self.operand(depth)?;
                self.operations += 1;
                format!("({whole}/2)")
            }
            Token::Open if depth < MAX_DEPTH => {
                self.at += 1;
                let inner = self.sequence(depth + 1)?;
                if self.token() != Some(&Token::Close) {
                    return None;
                }
                self.at += 1;
                format!("({inner})")
            }
            _ => return None,
        };
        if self.token() != Some(&Token::Percent) {
            return Some(operand);
        }
        self.at += 1;
        if self.token() != Some(&Token::Of) {
            return Some(format!("{operand}%"));
        }
        let before = self.at;
        self.at += 1;
        match self.operand(depth) {
            Some(whole) => {
                self.operations += 1;
                Some(format!("({operand}/100*{whole})"))
            }
            None => {
                self.at = before;
                Some(format!("{operand}%"))
            }
        }
    }
}

/// The maximum number of a message's tokens that are searched.
const MAX_TOKENS: usize = 400;

fn tokens(text: &str) -> Vec<PlacedToken> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next().filter(|_| tokens.len() < MAX_TOKENS) {
        let rest = &text[at..];
        let length = match first {
            '0'..='9' => number_length(rest),
            _ if first.is_alphabetic() => rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let token = match first {
            '0'..='9' => Some(Token::Number(number(&rest[..length]))),
            '+' | '-' | '*' | '/' | '^' => Some(Token::Operator(first)),
            '−' => Some(Token::Operator('-')),
            '×' | '·' => Some(Token::Operator('*')),
            '÷' => Some(Token::Operator('/')),
            '(' => Some(Token::Open),
            ')' => Some(Token::Close),
            '%' => Some(Token::Percent),
            '$' | '£' | '€' => Some(Token::Ignored),
            _ if first.is_alphabetic() => Some(word(&rest[..length].to_lowercase())),
            _ if first.is_whitespace() => None,
            _ => Some(Token::Other),
        };
        tokens.extend(token.map(|token| PlacedToken { token, span: at..at + length }));
        at += length;
    }
    joined(tokens)
}

/// Joins two words that form one operator: "split between", "multiplicado por", "dividido entre".
fn joined(tokens: Vec<PlacedToken>) -> Vec<PlacedToken> {
    let mut joined: Vec<PlacedToken> = Vec::with_capacity(tokens.len());
    for placed in tokens {
        match (joined.last_mut(), &placed.token) {
            // The second word stands for the same operator as the first.
            (Some(last), Token::Operator(operator))
                if last.token == Token::Operator(*operator) && last.span.len() > 1 && placed.span.len() > 1 =>
            {
                last.span.end = placed.span.end;
            }
            _ => joined.push(placed),
        }
    }
    joined
}

fn word(word: &str) -> Token {
    match word {
        "plus" | "más" | "mas" => Token::Operator('+'),
        "minus" | "less" | "menos" => Token::Operator('-'),
        "times" | "x" | "multiplied" | "multiplicado" | "por" => Token::Operator('*'),
        "divided" | "over" | "entre" | "dividido" | "split" | "between" | "among" => Token::Operator('/'),
        "percent" | "pct" | "porciento" => Token::Percent,
        "of" | "de" | "del" => Token::Of,
        "half" | "mitad" => Token::Half,
        "euros" | "euro" | "eur" | "dollars" | "dollar" | "usd" | "pounds" | "gbp" | "pesos" | "peso" | "bucks"
        | "quid" | "el" | "la" | "the" | "by" | "a" => Token::Ignored,
        _ => Token::Other,
    }
}

/// Returns the length of a number with separators between its digits: `1,250.50`, `6,5`.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_part = |at: usize| {
        let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
        digit(at) || matches!(bytes[at], b'.' | b',') && digit(at + 1) && at > 0 && digit(at - 1)
    };
    (0..bytes.len()).take_while(|at| is_part(*at)).count()
}

/// Returns a number with a decimal point and without thousands separators. The last separator separates thousands if it occurs more
/// than once, or if it is a comma before three digits.
pub(crate) fn number(text: &str) -> String {
    let Some(last) = text.rfind([',', '.']) else { return text.to_owned() };
    let separator = &text[last..=last];
    let repeats = text.matches(separator).count() > 1;
    let has_three = text.len() - last - 1 == 3;
    let only_digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
    if repeats || has_three && separator == "," {
        return only_digits(text);
    }
    format!("{}.{}", only_digits(&text[..last]), &text[last + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculation::{evaluate, formatted};

    #[test]
    fn calculations_are_found() {
        for (text, result) in [
            ("what is 15% of 240?", "36"),
            ("whats (72+81+90)/3", "81"),
            ("120 plus 25% tax", "150"),
            ("half of 90?", "45"),
            ("la mitad de 90", "45"),
            ("i got 70 80 and 96 whats the average", "82"),
            ("media de 5,5 y 7", "6.25"),
            ("bill is 90 split between 4, whats that each", "22.5"),
            ("what is 100 / 20% of 50", "10"),
            ("100 divided by half of 50", "4"),
            ("cuánto es 1200 * 3", "3600"),
            ("cuanto es el 10% de 85", "8.5"),
            ("(90-60)/60*100", "50"),
            ("12 x 12", "144"),
            ("what is 30/40", "0.75"),
            ("17 - 9", "8"),
            ("how much is £1,250.50 times 2", "2501"),
            ("cuánto es 100 dividido entre 8", "12.5"),
            ("2^10", "1024"),
            ("suma 3, 4 y 5", "12"),
            ("whats 3/8 of 720", "270"),
        ] {
            let found = find(text).unwrap_or_else(|| panic!("nothing found in {text}"));
            assert_eq!(evaluate(&found.1).map(formatted).as_deref(), Ok(result), "{text}: {}", found.1);
        }
    }

    #[test]
    fn dates_ranges_and_names_are_not_calculations() {
        for text in [
            "the flight is on 2026-05-03",
            "we are open 10-12 on weekdays",
            "call me at 555-1234",
            "the shop is open 24/7",
            "interest of 3% after 14 days",
            "dinner is 7-9",
            "what is the 10-12 slot?",
            "open 10 - 12 on weekdays, 14 - 18 on Sundays",
            "la cita es a las 5 menos 10",
            "who booked room 3 x 4?",
            "our average was 12 and 15 last year",
            "we get 10% of 200 seats",
            "buy 2x4 timber",
            "our average is good",
            "room 12 of building 3",
            "3 sets of 12 heel raises",
            "",
        ] {
            assert_eq!(find(text), None, "{text}");
        }
    }
}
