//! Evaluates expressions of numbers, `+`, `-`, `*`, `/`, `^`, `%` (per cent) and parentheses.

/// The maximum length of an expression in bytes.
const MAX_BYTES: usize = 500;
/// The maximum depth of parentheses and signs.
const MAX_DEPTH: usize = 32;

/// The reason why an expression cannot be evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ExpressionError {
    /// The expression exceeds the maximum length or depth.
    #[error("the expression exceeds {MAX_BYTES} bytes or {MAX_DEPTH} levels of parentheses")]
    TooLarge,
    /// The expression cannot be parsed at this 1-based byte position.
    #[error("invalid expression at character {0}; use numbers, + - * / ^ % and parentheses")]
    Syntax(usize),
    /// A division by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// The result is too large, or not a real number.
    #[error("the result is not a finite number")]
    NotFinite,
}

/// Evaluates an expression with the usual precedence.
///
/// # Errors
/// The expression is too large, cannot be parsed, divides by zero, or has no finite value.
pub(crate) fn evaluate(expression: &str) -> Result<f64, ExpressionError> {
    if expression.len() > MAX_BYTES {
        return Err(ExpressionError::TooLarge);
    }
    let mut parser = Parser { text: expression.as_bytes(), at: 0, depth: 0 };
    let value = parser.sum()?;
    parser.skip_spaces();
    match () {
        () if parser.at < parser.text.len() => Err(ExpressionError::Syntax(parser.at + 1)),
        () if !value.is_finite() => Err(ExpressionError::NotFinite),
        () => Ok(value),
    }
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn skip_spaces(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn take(&mut self, symbol: u8) -> bool {
        self.skip_spaces();
        let found = self.text.get(self.at) == Some(&symbol);
        self.at += usize::from(found);
        found
    }

    fn sum(&mut self) -> Result<f64, ExpressionError> {
        let mut value = self.product()?;
        loop {
            if self.take(b'+') {
                value += self.product()?;
            } else if self.take(b'-') {
                value -= self.product()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn product(&mut self) -> Result<f64, ExpressionError> {
        let mut value = self.power()?;
        loop {
            if self.take(b'*') {
                value *= self.power()?;
            } else if self.take(b'/') {
                let divisor = self.power()?;
                if divisor == 0.0 {
                    return Err(ExpressionError::DivisionByZero);
                }
                value /= divisor;
            } else {
                return Ok(value);
            }
        }
    }

    fn power(&mut self) -> Result<f64, ExpressionError> {
        let base = self.signed()?;
        if self.take(b'^') { Ok(base.powf(self.nested(Self::power)?)) } else { Ok(base) }
    }

    fn signed(&mut self) -> Result<f64, ExpressionError> {
        if self.take(b'-') {
            return Ok(-self.nested(Self::signed)?);
        }
        let mut value = if self.take(b'(') {
            let value = self.nested(Self::sum)?;
            if !self.take(b')') {
                return Err(ExpressionError::Syntax(self.at + 1));
            }
            value
        } else {
            self.number()?
        };
        while self.take(b'%') {
            value /= 100.0;
        }
        Ok(value)
    }

    fn nested(&mut self, parse: fn(&mut Self) -> Result<f64, ExpressionError>) -> Result<f64, ExpressionError> {
        if self.depth == MAX_DEPTH {
            return Err(ExpressionError::TooLarge);
        }
        self.depth += 1;
        let value = parse(self);
        self.depth -= 1;
        value
    }

    fn number(&mut self) -> Result<f64, ExpressionError> {
        self.skip_spaces();
        let start = self.at;
        while self.text.get(self.at).is_some_and(|byte| byte.is_ascii_digit() || *byte == b'.') {
            self.at += 1;
        }
        let digits = std::str::from_utf8(&self.text[start..self.at]).unwrap_or_default();
        digits.parse().map_err(|_| ExpressionError::Syntax(start + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_have_the_usual_precedence() {
        for (expression, value) in [
            ("2+3*4", 14.0),
            ("(2+3)*4", 20.0),
            ("-2^2", 4.0),
            ("2^3^2", 512.0),
            ("10 - 4 - 3", 3.0),
            ("100/8/2", 6.25),
            ("3%*875", 26.25),
            ("-(1.5)", -1.5),
        ] {
            assert_eq!(evaluate(expression), Ok(value), "{expression}");
        }
    }

    #[test]
    fn invalid_expressions_are_rejected() {
        for (expression, error) in [
            ("", ExpressionError::Syntax(1)),
            ("2+", ExpressionError::Syntax(3)),
            ("2 2", ExpressionError::Syntax(3)),
            ("(2", ExpressionError::Syntax(3)),
            ("1.2.3", ExpressionError::Syntax(1)),
            ("2+rm", ExpressionError::Syntax(3)),
            ("1/0", ExpressionError::DivisionByZero),
            ("9^9^9", ExpressionError::NotFinite),
            ("(-1)^0.5", ExpressionError::NotFinite),
        ] {
            assert_eq!(evaluate(expression), Err(error), "{expression}");
        }
        assert_eq!(evaluate(&"(".repeat(400)), Err(ExpressionError::TooLarge));
        assert_eq!(evaluate(&"-".repeat(400)), Err(ExpressionError::TooLarge));
        assert_eq!(evaluate(&"1+".repeat(400)), Err(ExpressionError::TooLarge));
    }
}
