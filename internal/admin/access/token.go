package access

import (
	"fmt"
	"os"
	"strings"
)

// leastToken is the minimum length of a token: a short token can be guessed.
const leastToken = 16

// A ShortTokenError is the number of characters in a token that is too short.
type ShortTokenError int

func (e ShortTokenError) Error() string {
	return fmt.Sprintf("has %d characters, must have %d at least", int(e), leastToken)
}

// A Token returns the token that a client has to know. The error is a [ShortTokenError] if it is too short.
type Token func() (string, error)

// File returns the Token in a file, nil without a name.
func File(name string) Token {
	if name == "" {
		return nil
	}
	return func() (string, error) {
		text, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		return checked(string(text))
	}
}

// Text returns the Token that is a text, nil if it is empty.
func Text(text string) Token {
	if text == "" {
		return nil
	}
	return func() (string, error) { return checked(text) }
}

func checked(text string) (string, error) {
	token := strings.TrimSpace(text)
	if n := len(token); n < leastToken {
		return "", ShortTokenError(n)
	}
	return token, nil
}
