package mongoproxy

import (
	"strings"
	"testing"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/internal/mongowire"
)

// A label in the comment of a command lowers the class by which it is shed, and
// never raises it.
func TestLabelsLowerTheClass(t *testing.T) {
	comment := func(fill func(*mongowire.Builder)) []byte {
		return doc(func(b *mongowire.Builder) {
			b.Text("find", "things")
			fill(b)
			b.Text("$db", "test")
		})
	}
	document := func(class string) []byte {
		return comment(func(b *mongowire.Builder) {
			b.Value("comment", mongowire.Value{Kind: mongowire.KindDocument, Data: doc(func(b *mongowire.Builder) {
				b.Text("from", "report")
				b.Text("criticality", class)
			})})
		})
	}
	for _, row := range []struct {
		name    string
		command []byte
		want    spillway.Criticality
	}{
		{"none", comment(func(*mongowire.Builder) {}), spillway.Critical},
		{"lower", document("SHEDDABLE"), spillway.Sheddable},
		{"lower, in other letters", document("sheddable_plus"), spillway.SheddablePlus},
		{"higher", document("CRITICAL_PLUS"), spillway.Critical},
		{"no class", document("URGENT"), spillway.Critical},
		{"long", document(strings.Repeat("SHEDDABLE", 100)), spillway.Critical},
		{"a text", comment(func(b *mongowire.Builder) { b.Text("comment", "criticality SHEDDABLE") }), spillway.Critical},
		{"a number", comment(func(b *mongowire.Builder) { b.Int("comment", 1) }), spillway.Critical},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := newFront(t, func(m *config.Mongo) { m.Shed.Mode = "enforce" }, newServer(t, fine))
			if !isOK(f.dial().ask(msg(1, 0, row.command))) {
				t.Error("it was rejected")
			}
			for class, s := range f.stats().Gate.Shed.Classes {
				if admitted := s.AdmittedTotal > 0; admitted != (class == row.want.Index()) {
					t.Errorf("class %d: %d let in, want one of %v", class, s.AdmittedTotal, row.want)
				}
			}
		})
	}
}
