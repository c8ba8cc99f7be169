package keys

import (
	"fmt"
	"os"
	"strings"
)

// leastToken is how long a token must be: a short one can be guessed.
const leastToken = 16

// A ShortTokenError says how many characters a file has that is to have a token.
type ShortTokenError int

func (e ShortTokenError) Error() string {
	return fmt.Sprintf("has %d characters, must have %d at least", int(e), leastToken)
}

// Token reads the token by which operators may change something. The error is a
// [ShortTokenError] if it could be guessed.
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
