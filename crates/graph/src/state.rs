//! The state of a run: fields, each with a rule (reducer) for how updates change it.

/// The state of a run. [`crate::state!`] generates the implementation.
pub trait State: Clone + std::fmt::Debug + Default + Send + Sync + 'static {
    /// The update type. Its default changes nothing.
    type Update: Default;

    /// Applies an update, field by field.
    fn apply(&mut self, update: Self::Update);
}

/// The reducers of fields.
pub mod reduce {
    use threadkeep_core::Map;

    /// Appends the new entries.
    pub fn append<T>(field: &mut Vec<T>, new: Vec<T>) {
        field.extend(new);
    }

    /// Replaces the value if there is a new value. 0 and empty text count as values.
    pub fn replace<T>(field: &mut T, new: Option<T>) {
        if let Some(new) = new {
            *field = new;
        }
    }

    /// Like [`replace()`], for a field that is initially unset.
    pub fn optional<T>(field: &mut Option<T>, new: Option<T>) {
        if new.is_some() {
            *field = new;
        }
    }

    /// Inserts the new fields, replacing fields of the same name. Nested objects are not merged.
    pub fn merge(field: &mut Map, new: Map) {
        field.extend(new);
    }
}

/// Defines a state type and its update type. Each field is preceded by its reducer.
///
/// | reducer | field | update | effect |
/// |---|---|---|---|
/// | `append x: T` | `Vec<T>` | `Vec<T>` | appends the new entries |
/// | `replace x: T` | `T` | `Option<T>` | replaces the value if there is a new value, which may be 0 or empty text |
/// | `optional x: T` | `Option<T>` | `Option<T>` | like `replace`, for a field that is initially unset |
/// | `merge x` | [`threadkeep_core::Map`] | [`threadkeep_core::Map`] | inserts the new fields, replacing those of the same name |
#[macro_export]
macro_rules! state {
    ($(#[$doc:meta])* $vis:vis struct $name:ident (update $update:ident) {
        $($(#[$field_doc:meta])* $rule:ident $field:ident $(: $type:ty)?),* $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        $vis struct $name {
            $($(#[$field_doc])* pub $field: $crate::state!(@field $rule $($type)?),)*
        }

        #[doc = concat!("An update of [`", stringify!($name), "`].")]
        #[derive(Clone, Debug, Default, PartialEq)]
        $vis struct $update {
            $($(#[$field_doc])* pub $field: $crate::state!(@update $rule $($type)?),)*
        }

        impl $crate::State for $name {
            type Update = $update;

            fn apply(&mut self, update: $update) {
                $($crate::reduce::$rule(&mut self.$field, update.$field);)*
            }
        }
    };
    (@field append $type:ty) => { Vec<$type> };
    (@field replace $type:ty) => { $type };
    (@field optional $type:ty) => { Option<$type> };
    (@field merge) => { $crate::Map };
    (@update append $type:ty) => { Vec<$type> };
    (@update replace $type:ty) => { Option<$type> };
    (@update optional $type:ty) => { Option<$type> };
    (@update merge) => { $crate::Map };
}

#[cfg(test)]
mod tests {
    use threadkeep_core::{Map, Value};

    use super::State;

    state! {
        /// A state with one field for each reducer.
        struct Tube (update TubeUpdate) {
            /// The conversation.
            append messages: String,
            /// The question.
            replace query: String,
            /// The confidence of the routing.
            replace confidence: f64,
            /// The agent that answers.
            optional agent: String,
            /// The user's location and preferences.
            merge user_context,
        }
    }

    fn map(json: &str) -> Map {
        serde_json::from_str::<Value>(json).unwrap().as_object().unwrap().clone()
    }

    // S0.16
    #[test]
    fn append_starts_from_an_empty_list() {
        let mut state = Tube::default();
        assert!(state.messages.is_empty());
        for text in ["one", "two"] {
            state.apply(TubeUpdate { messages: vec![text.to_owned()], ..TubeUpdate::default() });
        }
        assert_eq!(state.messages, ["one", "two"]);
    }

    // S0.17
    #[test]
    fn replace_accepts_zero_and_empty_text_but_ignores_none() {
        let mut state = Tube::default();
        assert_eq!((state.query.as_str(), state.confidence, &state.agent), ("", 0.0, &None));
        let update = TubeUpdate {
            query: Some("is there a delay?".to_owned()),
            confidence: Some(0.95),
            agent: Some("CIRCLE".to_owned()),
            ..TubeUpdate::default()
        };
        state.apply(update);
        let before = state.clone();
        state.apply(TubeUpdate::default());
        assert_eq!(state, before);
        let empty = TubeUpdate {
            query: Some(String::new()),
            confidence: Some(0.0),
            agent: Some(String::new()),
            ..TubeUpdate::default()
        };
        state.apply(empty);
        assert_eq!((state.query.as_str(), state.confidence, state.agent.as_deref()), ("", 0.0, Some("")));
    }

    // S0.18
    #[test]
    fn merge_does_not_merge_nested_objects() {
        let mut state = Tube::default();
        assert!(state.user_context.is_empty());
        for json in [r#"{"at":{"lat":1,"lon":2},"name":"Ana"}"#, r#"{"at":{"lat":3},"mode":null}"#] {
            state.apply(TubeUpdate { user_context: map(json), ..TubeUpdate::default() });
        }
        assert_eq!(state.user_context, map(r#"{"at":{"lat":3},"name":"Ana","mode":null}"#));
    }
}
