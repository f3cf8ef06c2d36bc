/// The phrases of the offline model. `{…}` are placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phrases {
    /// The message was not understood. `{about}`, `{examples}`.
    pub not_understood: String,
    /// The model's description of itself. `{about}`, `{examples}`.
    pub self_description: String,
    /// A required slot without its own question is missing. `{slot}`.
    pub missing: String,
    /// A name is ambiguous. `{name}`, `{choices}`.
    pub ambiguous: String,
    /// The separator between the last two choices.
    pub or: String,
    /// A tool failed. `{tool}`, `{output}`.
    pub failed: String,
    /// A tool is not available in the request. `{tool}`.
    pub disabled: String,
    /// The tools returned no text.
    pub done: String,
    /// Introduces a quotation of the user with a date. `{day}`.
    pub you_said_on: String,
    /// Introduces a quotation of the user.
    pub you_said: String,
    /// Introduces a quotation of the assistant. `{day}`.
    pub i_said_on: String,
    /// No passage answers the question.
    pub nothing_said: String,
    /// The reply to a statement.
    pub noted: String,
    /// Messages that request the model's description of itself. Compared as a whole, ignoring case, accents and
    /// punctuation.
    pub who_are_you: Vec<String>,
    /// Prefixes of messages that continue the previous one.
    pub continuations: Vec<String>,
    /// Words that separate two questions of one message.
    pub conjunctions: Vec<String>,
    /// Words that select the first, second, … of several choices.
    pub ordinals: Vec<String>,
}

impl Phrases {
    /// Returns the English phrases.
    #[must_use]
    pub fn english() -> Self {
        Self {
            not_understood: "I did not understand that. {about}{examples}".to_owned(),
            self_description: "I am the offline model: I use patterns and tools, not a language model. \
                               {about}{examples}"
                .to_owned(),
            missing: "Which {slot} do you mean?".to_owned(),
            ambiguous: "Which {name} do you mean: {choices}?".to_owned(),
            or: " or ".to_owned(),
            failed: "That did not work: {tool} says: {output}".to_owned(),
            disabled: "That needs the tool {tool}, which is not enabled here.".to_owned(),
            done: "Done.".to_owned(),
            you_said_on: "You said on {day}:".to_owned(),
            you_said: "You said:".to_owned(),
            i_said_on: "I said on {day}:".to_owned(),
            nothing_said: "I found nothing about that in your messages.".to_owned(),
            noted: "I will keep that in mind.".to_owned(),
            who_are_you: owned(&[
                "who are you",
                "what are you",
                "are you a bot",
                "are you an ai",
                "are you a language model",
                "which model are you",
                "what model are you",
                "what can you do",
                "help",
            ]),
            continuations: owned(&["and", "what about", "how about", "and what about", "or", "but", "same", "then"]),
            conjunctions: owned(&["and", "also", "then"]),
            ordinals: owned(&["first", "second", "third", "fourth", "fifth", "sixth"]),
        }
    }

    /// Returns the Spanish phrases.
    #[must_use]
    pub fn spanish() -> Self {
        Self {
            not_understood: "No entendí eso. {about}{examples}".to_owned(),
            self_description: "Soy el modelo sin conexión: detrás de mí no hay un modelo de lenguaje, sólo patrones y \
                               herramientas. {about}{examples}"
                .to_owned(),
            missing: "¿Cuál es el dato que falta ({slot})?".to_owned(),
            ambiguous: "¿Cuál «{name}»: {choices}?".to_owned(),
            or: " o ".to_owned(),
            failed: "No funcionó: {tool} dice: {output}".to_owned(),
            disabled: "Para eso hace falta la herramienta {tool}, que no está habilitada aquí.".to_owned(),
            done: "Hecho.".to_owned(),
            you_said_on: "El {day} dijiste:".to_owned(),
            you_said: "Dijiste:".to_owned(),
            i_said_on: "El {day} dije:".to_owned(),
            nothing_said: "No encuentro nada de eso en lo que me contaste.".to_owned(),
            noted: "Lo tengo en cuenta.".to_owned(),
            who_are_you: owned(&[
                "quién eres",
                "qué eres",
                "eres un bot",
                "eres una ia",
                "qué modelo eres",
                "qué puedes hacer",
                "ayuda",
            ]),
            continuations: owned(&["y", "qué tal", "y qué tal", "o", "pero", "entonces"]),
            conjunctions: owned(&["y", "también", "luego"]),
            ordinals: owned(&["primera", "segunda", "tercera", "cuarta", "quinta", "sexta"]),
        }
    }
}

impl Default for Phrases {
    fn default() -> Self {
        Self::english()
    }
}

fn owned(phrases: &[&str]) -> Vec<String> {
    phrases.iter().map(|phrase| (*phrase).to_owned()).collect()
}

/// Replaces the placeholders of a phrase. Placeholders within values are not replaced.
pub(crate) fn fill(phrase: &str, values: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(phrase.len());
    let mut rest = phrase;
    while let Some(open) = rest.find('{') {
        filled.push_str(&rest[..open]);
        rest = &rest[open..];
        let value = values.iter().find_map(|(name, value)| {
            let after = rest[1..].strip_prefix(name)?.strip_prefix('}')?;
            Some((after, value))
        });
        match value {
            Some((after, value)) => {
                filled.push_str(value);
                rest = after;
            }
            None => {
                filled.push('{');
                rest = &rest[1..];
            }
        }
    }
    filled.push_str(rest);
    filled
}
