package spillway

import (
	"context"
	"fmt"
	"strings"
)

// Criticality says how much a call matters when not all calls can be served. Values are
// ordered: a higher Criticality is rejected later. The zero value is [Critical], so a call
// that carries no label is ordinary production traffic.
//
// Source: Site Reliability Engineering, chapter 21, "Criticality".
type Criticality int8

const (
	// Sheddable is traffic for which frequent partial unavailability and
	// occasional full unavailability is expected.
	Sheddable Criticality = iota - 2
	// SheddablePlus is traffic for which partial unavailability is expected:
	// batch work that can be retried minutes or hours later.
	SheddablePlus
	// Critical is the default: rejecting it has an impact that users see.
	// Services provision for all of their Critical and CriticalPlus traffic.
	Critical
	// CriticalPlus is reserved for the few calls whose failure hurts users most.
	CriticalPlus
)

// Criticalities is how many values there are; [Criticality.Index] is below it.
const Criticalities = 4

var criticalityNames = [Criticalities]string{"SHEDDABLE", "SHEDDABLE_PLUS", "CRITICAL", "CRITICAL_PLUS"}

// Valid reports whether c is one of the four values.
func (c Criticality) Valid() bool { return c >= Sheddable && c <= CriticalPlus }

// Index returns 0 for [Sheddable] up to 3 for [CriticalPlus], for tables with
// an entry for each value. A value that is not [Criticality.Valid] counts as
// [Critical].
func (c Criticality) Index() int {
	if !c.Valid() {
		c = Critical
	}
	return int(c - Sheddable)
}

// String returns the spelling of the source, such as CRITICAL_PLUS.
func (c Criticality) String() string {
	if !c.Valid() {
		return fmt.Sprintf("Criticality(%d)", int8(c))
	}
	return criticalityNames[c.Index()]
}

// ParseCriticality returns the value that String spells as s, ignoring case.
func ParseCriticality(s string) (Criticality, error) {
	for i, name := range criticalityNames {
		if len(s) == len(name) && strings.EqualFold(s, name) {
			return Criticality(i) + Sheddable, nil
		}
	}
	return Critical, fmt.Errorf("spillway: criticality %.32q is not one of %s", s, strings.Join(criticalityNames[:], ", "))
}

// MarshalText implements [encoding.TextMarshaler].
func (c Criticality) MarshalText() ([]byte, error) {
	if !c.Valid() {
		return nil, fmt.Errorf("spillway: %v has no text form", c)
	}
	return []byte(c.String()), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (c *Criticality) UnmarshalText(text []byte) error {
	v, err := ParseCriticality(string(text))
	if err == nil {
		*c = v
	}
	return err
}

type criticalityKey struct{}

// WithCriticality returns a copy of ctx that carries c. Set it where a request
// enters the system; calls made with ctx, and with contexts derived from it,
// inherit it.
func WithCriticality(ctx context.Context, c Criticality) context.Context {
	return context.WithValue(ctx, criticalityKey{}, c)
}

// CriticalityFrom returns the Criticality that ctx carries, or [Critical].
func CriticalityFrom(ctx context.Context) Criticality {
	c, _ := LookupCriticality(ctx)
	return c
}

// LookupCriticality returns the Criticality that ctx carries, and whether it
// carries one. A call without is [Critical] here, and is sent without a label, so
// that a receiver that knows better can say what it is.
func LookupCriticality(ctx context.Context) (c Criticality, ok bool) {
	c, ok = ctx.Value(criticalityKey{}).(Criticality)
	return c, ok
}
