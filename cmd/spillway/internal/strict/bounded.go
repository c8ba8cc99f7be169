package strict

import (
	"fmt"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// maxDepth is how deep values may be nested in brackets, or by signs of one line. By
// indentation they cannot be nested deep in a text that is not long.
const maxDepth = 100

// bounded returns an error if a text has more words and signs than that, or nests values
// too deeply. The time that the library takes grows with the square of either.
func bounded(text []byte, words int) error {
	all := lexer.Tokenize(string(text))
	if len(all) > words {
		return fmt.Errorf("cannot be read: has more than %d words and signs", words)
	}
	brackets, signs, line := 0, 0, 0
	for _, t := range all {
		if t.Position.Line != line {
			signs, line = 0, t.Position.Line
		}
		switch t.Type { //nolint:exhaustive // all others nest nothing
		case token.SequenceStartType, token.MappingStartType:
			brackets++
		case token.SequenceEndType, token.MappingEndType:
			brackets = max(0, brackets-1)
			signs = 0
		case token.CollectEntryType:
			signs = 0
		case token.SequenceEntryType, token.MappingKeyType, token.MappingValueType, token.AnchorType, token.TagType:
			signs++
		}
		if brackets > maxDepth || signs > maxDepth {
			return fmt.Errorf("cannot be read: line %d is nested more than %d deep", line, maxDepth)
		}
	}
	return nil
}
