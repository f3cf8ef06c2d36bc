//! Splits statutes into articles, and documents into passages.

use threadkeep::{Map, Value};

use crate::corpus::{Article, Item, Passage};

/// The maximum length of a piece of a long article or document, in bytes.
const PASSAGE_BYTES: usize = 2_000;
/// The maximum number of lines in a page header.
const HEADER_LINES: usize = 10;

const LAWS: [(&str, &str); 4] = [
    ("amparo", "Ley de Amparo"),
    ("cpeum", "Constitución Política de los Estados Unidos Mexicanos"),
    ("lft", "Ley Federal del Trabajo"),
    ("ccf", "Código Civil Federal"),
];

/// Returns the articles of a statute: `{law_id, articles: [{number, content, type}]}`. The position identifies an article, because
/// ids repeat.
pub(crate) fn articles(statute: &Map) -> Option<Vec<Item>> {
    let law = statute.get("law_id")?.as_str()?;
    let articles = statute.get("articles")?.as_array()?;
    let known = LAWS.iter().find(|(id, _)| *id == law).map(|(_, name)| (*name).to_owned());
    let name =
        known.or_else(|| Some(statute.get("law_name")?.as_str()?.to_owned())).unwrap_or_else(|| law.to_uppercase());
    let mut items = Vec::new();
    for (position, article) in articles.iter().enumerate() {
        let member = |name: &str| article.get(name).and_then(Value::as_str).unwrap_or_default();
        let text = without_page_headers(member("content"));
        let number = match member("type") {
            "transitorio" => format!("Transitorio {}", member("number")),
            _ => member("number").to_owned(),
        };
        let parts = split(&text);
        for (part, (_, text)) in parts.iter().enumerate() {
            items.push(Item::Article(Article {
                law: law.to_owned(),
                law_name: name.clone(),
                number: number.clone(),
                position,
                part: if parts.len() == 1 { 0 } else { part + 1 },
                text: text.clone(),
            }));
        }
    }
    Some(items)
}

/// Returns the passages of a document: `{_id, title, text, court, date}`.
pub(crate) fn passages(document: &Map) -> Option<Vec<Item>> {
    let member = |name: &str| document.get(name).and_then(Value::as_str).map(|text| text.trim().replace('\0', ""));
    let text = member("text").filter(|text| !text.is_empty())?;
    let id = member("_id").or_else(|| member("id")).filter(|id| !id.is_empty() && id.len() <= 400)?;
    let title = member("title").unwrap_or_else(|| id.clone());
    let heading = text.lines().next().unwrap_or_default().trim().to_owned();
    // Some sources give a decision only a number as its title; its first line is a better title.
    let is_bare = title.starts_with("Sentencia ") && (1..=160).contains(&heading.len());
    let title = if is_bare { format!("{heading} ({title})") } else { title };
    let country = member("jurisdiction").or_else(|| Some(member("_source")?.split('/').next()?.to_owned()));
    let country = country.filter(|country| country.len() == 2 && country != "MX");
    let pieces = split(&text).into_iter().enumerate();
    let passages = pieces.map(|(number, (paragraphs, text))| {
        let (first, last) = (paragraphs.start + 1, paragraphs.end);
        Item::Passage(Passage {
            document: id.clone(),
            title: title.clone(),
            place: if first >= last { format!("párrafo {first}") } else { format!("párrafos {first}-{last}") },
            number,
            country: country.clone(),
            court: member("court").or_else(|| member("issuing_body")),
            date: member("date"),
            text,
        })
    });
    Some(passages.collect())
}

/// Splits text at paragraphs into pieces of about [`PASSAGE_BYTES`], with the range of their paragraphs.
fn split(text: &str) -> Vec<(std::ops::Range<usize>, String)> {
    let paragraphs: Vec<&str> = text.split('\n').map(str::trim).filter(|line| !line.is_empty()).collect();
    let mut pieces: Vec<(std::ops::Range<usize>, String)> = Vec::new();
    for (number, paragraph) in paragraphs.iter().enumerate() {
        for paragraph in split_long(paragraph) {
            match pieces.last_mut() {
                Some((range, piece)) if piece.len() + paragraph.len() < PASSAGE_BYTES => {
                    piece.push('\n');
                    piece.push_str(paragraph);
                    range.end = number + 1;
                }
                _ => pieces.push((number..number + 1, paragraph.to_owned())),
            }
        }
    }
    pieces
}

/// Splits a paragraph that is longer than a passage, at the end of a sentence if possible.
fn split_long(paragraph: &str) -> Vec<&str> {
    let (mut rest, mut pieces) = (paragraph, Vec::new());
    while rest.len() > PASSAGE_BYTES {
        let limit = rest.floor_char_boundary(PASSAGE_BYTES);
        let at = rest[..limit].rfind(". ").map(|at| at + 1).or_else(|| rest[..limit].rfind(' ')).unwrap_or(limit);
        let (piece, next) = rest.split_at(at.max(1));
        pieces.push(piece.trim());
        rest = next.trim();
    }
    pieces.push(rest);
    pieces
}

/// Removes the headers of printed pages: `36 de 119`, the name of the statute, and the lines of the Chamber of Deputies.
fn without_page_headers(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut kept = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        if is_page_number(lines[at]) {
            let header = &lines[at..lines.len().min(at + HEADER_LINES)];
            let end = header.iter().rposition(|line| is_header(line)).unwrap_or(0);
            at += end + 1;
            continue;
        }
        if !is_header(lines[at]) {
            kept.push(lines[at]);
        }
        at += 1;
    }
    kept.join("\n").trim().to_owned()
}

fn is_page_number(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let is_number = |word: Option<&str>| word.is_some_and(|word| word.chars().all(|c| c.is_ascii_digit()));
    is_number(words.next()) && words.next() == Some("de") && is_number(words.next()) && words.next().is_none()
}

fn is_header(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("CÁMARA DE DIPUTADOS DEL H. CONGRESO")
        || matches!(line, "Secretaría General" | "Secretaría de Servicios Parlamentarios")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn articles_are_keyed_by_position_and_have_no_page_headers() {
        let statute = json!({"law_id": "amparo", "articles": [
            {"id": "a", "number": "Artículo 1o", "type": "article", "content":
                "Artículo 1o. Uno.\n36 de 119\nLEY DE AMPARO, REGLAMENTARIA\nESTADOS UNIDOS\nCÁMARA DE DIPUTADOS DEL H. CONGRESO DE LA UNIÓN Última Reforma\nSecretaría General\nSecretaría de Servicios Parlamentarios\nDos."},
            {"id": "t", "number": "Primero", "type": "transitorio", "content": "Entra en vigor."},
            {"id": "t", "number": "Primero", "type": "transitorio", "content": "Entra en vigor."},
        ]});
        let items = articles(statute.as_object().unwrap()).unwrap();
        assert_eq!(items[0].text(), "Artículo 1o. Uno.\nDos.");
        assert_eq!(items[0].title(), "Ley de Amparo, Artículo 1o");
        assert_eq!(items[1].title(), "Ley de Amparo, Transitorio Primero");
        let keys: Vec<String> = items.iter().map(Item::key).collect();
        assert_eq!(keys, ["ley:amparo:0.0", "ley:amparo:1.0", "ley:amparo:2.0"]);
    }

    #[test]
    fn decisions_are_split_into_passages_that_name_their_paragraphs() {
        let paragraphs: Vec<String> = (1..=30).map(|number| format!("{number}. {}", "palabra ".repeat(30))).collect();
        let text = format!("AMPARO DIRECTO 1/2024\n\n{}", paragraphs.join("\n\n"));
        let document =
            json!({"_id": "d1", "title": "Sentencia 1", "text": text, "court": "SCJN", "date": "2025-08-13"});
        let items = passages(document.as_object().unwrap()).unwrap();
        assert!(items.len() > 3, "{}", items.len());
        assert_eq!(items[0].title(), "AMPARO DIRECTO 1/2024 (Sentencia 1), párrafos 1-9");
        assert!(items.iter().all(|item| item.text().len() <= PASSAGE_BYTES));
        let all: String = items.iter().map(Item::text).collect::<Vec<_>>().join("\n");
        assert!(paragraphs.iter().all(|paragraph| all.contains(paragraph.trim())), "no paragraph is lost");
    }

    #[test]
    fn a_paragraph_longer_than_a_passage_is_split() {
        let text = "Oración con varias palabras. ".repeat(300);
        assert!(split(&text).iter().all(|(_, piece)| piece.len() <= PASSAGE_BYTES));
    }
}
