//! The grammar of calculations in words.

use super::numbers::Item;
use super::pricing::MONEY;
use crate::calculation;

/// Parses a calculation that all items belong to.
pub(super) fn phrase(items: &[Item]) -> Option<String> {
    let position = |known: &[&str]| items.iter().position(|item| item.is(known));
    let at = |range: &[Item]| operand(range);
    let first = items.first()?;
    let rest = &items[1..];
    if first.is(&["take", "knock", "subtract", "deduct", "remove", "resta"]) {
        // "Take 19% off that", "take off 19%", "subtract 12 from the first one"
        let rest = if rest.first()?.is(&["off", "away"]) { &rest[1..] } else { rest };
        // "A" is a preposition in Spanish, and an article before the amount.
        let rest = if rest.first()?.is(&["a"]) { &rest[1..] } else { rest };
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
        // "The sum of 4 and 5"
        let rest = if rest.first().is_some_and(|item| item.is(&["of", "de"])) { &rest[1..] } else { rest };
        // "Add up the last two", "add the last two up"
        let is_up = |item: Option<&Item>| item.is_some_and(|item| item.is(&["up"]));
        let rest = if is_up(rest.first()) { &rest[1..] } else { rest };
        return sum(if is_up(rest.last()) { &rest[..rest.len() - 1] } else { rest });
    }
    // "How far apart are the two results?"
    if first.is(&["far"]) && rest.first().is_some_and(|item| item.is(&["apart"])) {
        let start = rest.iter().position(|item| item.is(&["are"]))? + 1;
        let (one, other) = two(rest.get(start..)?)?;
        return difference(&one, &other);
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
        let (one, other) = two(rest.get(1..)?)?;
        return difference(&one, &other);
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
        return difference(&at(items.get(is + 1..than)?)?, &at(&items[than + 1..])?);
    }
    // "96 is what percent of 160?"
    if let Some(what) = position(&["what"])
        && let [is, what, percent, of, ..] = items.get(what.checked_sub(1)?..)?
        && is.is(&["is", "are", "was"])
        && what.is(&["what"])
        && percent.is(&["percent", "percentage"])
        && of.is(&["of"])
    {
        let whole = position(&["of"])? + 1;
        return Some(format!("{}/{}*100", grouped(&at(&items[..whole - 4])?), grouped(&at(&items[whole..])?)));
    }
    // "The second as a percentage of the first"
    if let Some(share) = position(&["percentage", "percent"])
        && let Some(as_word) = position(&["as", "como", "in"])
        && as_word < share
    {
        let whole = items.get(share + 2..)?;
        return Some(format!("{}/{}*100", at(&items[..as_word])?, at(whole)?));
    }
    // "What percent is 45 of 360?"
    if first.is(&["percentage", "percent"])
        && let Some(of) = position(&["of"])
        && rest.first().is_some_and(|item| item.is(&["is", "are"]))
        && of > 2
    {
        return Some(format!("{}/{}*100", grouped(&at(&items[2..of])?), grouped(&at(&items[of + 1..])?)));
    }
    if first.is(&["percentage", "percent", "which"]) {
        let of = position(&["of"])?;
        let is = items.iter().skip(of).position(|item| item.is(&["is", "are"]))? + of;
        return Some(format!("{}/{}*100", at(&items[is + 1..])?, at(&items[of + 1..is])?));
    }
    at(items)
}

/// Returns the difference of two numbers.
pub(super) fn difference(one: &str, other: &str) -> Option<String> {
    let is_larger = one.parse::<f64>().ok()? >= other.parse::<f64>().ok()?;
    Some(if is_larger { format!("{one}-{other}") } else { format!("{other}-{one}") })
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
    // "A flat 15"
    let items = match items.first()? {
        first if first.is(&["flat", "further", "another", "extra"]) => &items[1..],
        _ => items,
    };
    let (first, rest) = items.split_first()?;
    let of = |rest: &[Item]| {
        let skipped = rest.iter().take_while(|item| item.is(&["of", "de", "del", "the", "on"])).count();
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
        if next.is(&MONEY) {
            let joined: Vec<Item> = std::iter::once(first.clone()).chain(after.iter().cloned()).collect();
            return operand(&joined);
        }
        if next.is(&["squared"]) && after.is_empty() {
            return Some(format!("{number}^2"));
        }
        if next.is(&["cubed"]) && after.is_empty() {
            return Some(format!("{number}^3"));
        }
        // "Three fifths of 950"
        let parts = match () {
            () if next.is(&["halves"]) => Some(2),
            () if next.is(&["thirds"]) => Some(3),
            () if next.is(&["quarters", "fourths"]) => Some(4),
            () if next.is(&["fifths"]) => Some(5),
            () if next.is(&["tenths"]) => Some(10),
            () => None,
        };
        if let Some(parts) = parts {
            return Some(format!("{number}/{parts}*{}", grouped(&of(after)?)));
        }
        // "3 to the power of 4"
        if let [to, the, power, of, Item::Number(exponent)] = rest
            && to.is(&["to"])
            && the.is(&["the"])
            && power.is(&["power"])
            && of.is(&["of"])
        {
            return Some(format!("{number}^{exponent}"));
        }
        return calculation::whole(&written(items)?);
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
        () if first.is(&["square", "cube"]) && rest.first()?.is(&["of", "de"]) => {
            Some(format!("{}^{}", grouped(&of(rest)?), if first.is(&["square"]) { 2 } else { 3 }))
        }
        () if first.is(&["root", "sqrt"]) => Some(format!("({})^0.5", of(rest)?)),
        () => None,
    }
}

/// Returns items as text; `None` if they refer to several numbers at once.
fn written(items: &[Item]) -> Option<String> {
    let texts = items.iter().map(|item| match item {
        Item::Number(text) | Item::Word(text) => Some(text.as_str()),
        Item::Group(_) => None,
    });
    Some(texts.collect::<Option<Vec<_>>>()?.join(" "))
}
