use threadkeep_core::text::Language;

/// The phrases of the offline model in one language. The documentation of each phrase lists its placeholders, such as
/// `{about}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phrases {
    /// The language of the phrases.
    pub language: Language,
    /// Words that identify the language of messages that are too short for detection, such as "gracias".
    pub markers: Vec<String>,
    /// Says that a message was not understood: `{about}`, `{examples}`.
    pub not_understood: String,
    /// Describes the model: `{about}`, `{examples}`.
    pub self_description: String,
    /// Asks for a required slot that declares no question: `{slot}`.
    pub missing: String,
    /// Asks for the meaning of an ambiguous name: `{name}`, `{choices}`.
    pub ambiguous: String,
    /// The separator between the last two choices.
    pub or: String,
    /// Says that a tool failed: `{tool}`, `{output}`.
    pub failed: String,
    /// Says that a tool is not available in the request: `{tool}`.
    pub disabled: String,
    /// The answer if the tools returned no text.
    pub done: String,
    /// Lists the parts of the message that the answer does not take into account: `{words}`.
    pub ignored: String,
    /// The reply to a follow-up that refers to nothing, such as "again" in a first message.
    pub no_reference: String,
    /// The reply to a greeting: `{about}`.
    pub greeting: String,
    /// The reply to thanks and to acknowledgements.
    pub welcome: String,
    /// The reply to a farewell.
    pub farewell: String,
    /// The reply to "no" if nothing was proposed.
    pub declined: String,
    /// The answer to a question about the source of the last answer.
    pub source: String,
    /// The reply to a complaint.
    pub apology: String,
    /// Describes the model if the conversation already contains the long description: `{example}`.
    pub help_again: String,
    /// Introduces a quotation of the user with its date: `{day}`.
    pub you_said_on: String,
    /// Introduces a quotation of the user without a date.
    pub you_said: String,
    /// Introduces a quotation of the assistant with its date: `{day}`.
    pub i_said_on: String,
    /// Says that no passage answers the question.
    pub nothing_said: String,
    /// The reply to a statement.
    pub noted: String,
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
            language: Language::English,
            markers: Vec::new(),
            not_understood: "I did not understand that. {about}{examples}".to_owned(),
            self_description: "I am the offline model: I use a small classifier and tools, not a language model. \
                               {about}{examples}"
                .to_owned(),
            missing: "Which {slot} do you mean?".to_owned(),
            ambiguous: "Which {name} do you mean: {choices}?".to_owned(),
            or: " or ".to_owned(),
            failed: "That did not work: {tool} says: {output}".to_owned(),
            disabled: "That needs the tool {tool}, which is not enabled here.".to_owned(),
            done: "Done.".to_owned(),
            ignored: "I did not take this into account: {words}.".to_owned(),
            no_reference: "I do not know what that refers to.".to_owned(),
            greeting: "Hello. {about}".to_owned(),
            welcome: "You are welcome.".to_owned(),
            farewell: "Goodbye.".to_owned(),
            declined: "All right.".to_owned(),
            source: "My answers come from the tools that I call.".to_owned(),
            apology: "I am sorry. Please say it in other words, or correct what I got wrong.".to_owned(),
            help_again: "Ask me, for example: {example}".to_owned(),
            you_said_on: "You said on {day}:".to_owned(),
            you_said: "You said:".to_owned(),
            i_said_on: "I said on {day}:".to_owned(),
            nothing_said: "I found nothing about that in your messages.".to_owned(),
            noted: "I will keep that in mind.".to_owned(),
            continuations: owned(&["and", "what about", "how about", "and what about", "or", "but", "same", "then"]),
            conjunctions: owned(&["and", "also", "then"]),
            ordinals: owned(&["first", "second", "third", "fourth", "fifth", "sixth"]),
        }
    }

    /// Returns the Spanish phrases.
    #[must_use]
    pub fn spanish() -> Self {
        Self {
            language: Language::Spanish,
            markers: [
                "hola", "gracias", "si", "adios", "ayuda", "vale", "buenas", "claro", "perfecto", "olvidalo", "chao",
            ]
            .map(str::to_owned)
            .into(),
            not_understood: "No entendí eso. {about}{examples}".to_owned(),
            self_description:
                "Soy el modelo sin conexión: detrás de mí no hay un modelo de lenguaje, sólo un clasificador pequeño y \
                               herramientas. {about}{examples}"
                    .to_owned(),
            missing: "¿Cuál es el dato que falta ({slot})?".to_owned(),
            ambiguous: "¿Cuál «{name}»: {choices}?".to_owned(),
            or: " o ".to_owned(),
            failed: "No funcionó: {tool} dice: {output}".to_owned(),
            disabled: "Para eso hace falta la herramienta {tool}, que no está habilitada aquí.".to_owned(),
            done: "Hecho.".to_owned(),
            ignored: "No tuve en cuenta esto: {words}.".to_owned(),
            no_reference: "No sé a qué se refiere eso.".to_owned(),
            greeting: "Hola. {about}".to_owned(),
            welcome: "De nada.".to_owned(),
            farewell: "Hasta luego.".to_owned(),
            declined: "De acuerdo.".to_owned(),
            source: "Mis respuestas vienen de las herramientas que uso.".to_owned(),
            apology: "Lo siento. Dilo con otras palabras, o corrige lo que entendí mal.".to_owned(),
            help_again: "Pregúntame, por ejemplo: {example}".to_owned(),
            you_said_on: "El {day} dijiste:".to_owned(),
            you_said: "Dijiste:".to_owned(),
            i_said_on: "El {day} dije:".to_owned(),
            nothing_said: "No encuentro nada de eso en lo que me contaste.".to_owned(),
            noted: "Lo tengo en cuenta.".to_owned(),
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
