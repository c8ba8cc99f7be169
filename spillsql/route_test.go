package spillsql

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
)

// Statements that the database does not accept are throttled, and no others: whether one
// statement fails for lack of memory, has a table that is locked, or has other values each time.
func TestOneBadStatement(t *testing.T) {
	for name, answer := range map[string]error{
		"memory":  state("53200"),
		"timeout": state("57014"),
		"locked":  state("55P03"),
		"syntax":  state("42601"),
	} {
		for _, texts := range []int{1, 1000} {
			t.Run(fmt.Sprint(name, texts), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := &worker{takes: time.Millisecond}
					w.answer = func(query string) error {
						if strings.HasPrefix(query, "bad") {
							return answer
						}
						return nil
					}
					db, _ := open(t, w, Config{})
					rejected := map[bool]int{}
					for i := range 4000 { // four in five are bad
						text, good := fmt.Sprintf("bad 'x%d', %d", i%texts, i%texts), i%5 == 0
						if good {
							text = "good"
						}
						if _, err := db.ExecContext(t.Context(), text); errors.Is(err, spillway.ErrRejected) {
							rejected[good]++
						}
					}
					if rejected[true] > 0 {
						t.Errorf("rejected %d of 800 good statements", rejected[true])
					}
					if limits := name == "memory" || name == "timeout"; (rejected[false] > 0) != limits {
						t.Errorf("rejected %d of 3,200 bad statements", rejected[false])
					}
				})
			})
		}
	}
}

func TestRoute(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT 1": "SELECT ?",
		"SELECT a1, $2 FROM t WHERE b = 'it''s' AND c": "SELECT a1, $2 FROM t WHERE b = ? AND c",
		"INSERT INTO t VALUES (1, 'a', 2.5e3), (0x2)":  "INSERT INTO t VALUES (?), (?)",
		"DELETE FROM t WHERE id IN (1,2, 3)":           "DELETE FROM t WHERE id IN (?)",
		"SELECT 'open":                                 "SELECT ?",
		"":                                             "",
	} {
		if got := statement(text).Route(); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	long := strings.Repeat("é", 1000)
	a, b := statement(long+"a").Route(), statement(long+"b").Route()
	if a == b || len(a) > maxRoute+30 || strings.ToValidUTF8(a, "?") != a {
		t.Errorf("%q and %q", a, b)
	}
	if a, b := statement(strings.Repeat(long, 9)+"a").Route(), statement(strings.Repeat(long, 9)+"b").Route(); a != b {
		t.Errorf("%q and %q", a, b)
	}
}

func FuzzRoute(f *testing.F) {
	f.Add("SELECT 1, 'x' FROM t2 WHERE a = -1")
	f.Fuzz(func(t *testing.T, text string) {
		if r := statement(text).Route(); len(r) > maxRoute+30 {
			t.Errorf("%q has %d bytes", r, len(r))
		}
	})
}
