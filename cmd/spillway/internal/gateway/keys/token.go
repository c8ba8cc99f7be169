package keys

import (
	"fmt"
	"os"
	"strings"
)

// leastToken is the minimum length of a token: a short token can be guessed.
const leastToken = 16

// A ShortTokenError is the number of characters in a token file that is too short.
type ShortTokenError int

func (e ShortTokenError) Error() string {
	return fmt.Sprintf("has %d characters, must have %d at least", int(e), leastToken)
}

// Token reads a token for operators. The error is a [ShortTokenError] if the token is too
// short.
func Token(name string) (string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if n := len(token); n < leastToken {
		return "", ShortTokenError(n)
	}
	return token, nil
}
