package message

import (
	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/claims"
)

// Lowered returns the criticality of a command whose class by the configuration is known. A
// label in the comment can only lower it, because clients are not trusted.
func (c *Command) Lowered(known spillway.Criticality) spillway.Criticality {
	if len(c.label) == 0 {
		return known
	}
	if said, ok := claims.Criticality([]string{string(c.label)}, nil); ok {
		return min(known, said)
	}
	return known
}
