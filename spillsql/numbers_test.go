package spillsql

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/seed90641741/spillway/fault"
)

// number is an error that is itself a number, as ErrNo of github.com/mattn/go-sqlite3 is.
type number int

func (n number) Error() string { return fmt.Sprint(int(n)) }

// list is an error that is a list, as MySQLWarnings was in github.com/go-sql-driver/mysql.
type list []string

func (l list) Error() string { return fmt.Sprint([]string(l)) }

type coded struct{ Code number }

func (c *coded) Error() string { return "coded" }

type embedding struct{ *coded }

// several wraps errors, some of which are nil.
type several []error

func (s several) Error() string   { return "several" }
func (s several) Unwrap() []error { return s }

func TestErrorsWithoutAValueAreNoAnswers(t *testing.T) {
	var none *coded
	for _, err := range []error{nil, none, several{nil, none}, fmt.Errorf("wrapped: %w", error(none)), errors.Join(none), list(nil)} {
		if f := Classify(err); f != (fault.Failure{}) {
			t.Errorf("%#v: %+v", err, f)
		}
	}
}

func TestNumbersAreReadFromAllKindsOfErrors(t *testing.T) {
	for _, c := range []struct {
		err  any
		want int
		ok   bool
	}{
		{coded{Code: 5}, 5, true},
		{number(6), 6, true},
		{struct{ Code uint16 }{1040}, 1040, true},
		{struct{ Code string }{"5"}, 0, false},
		{struct{}{}, 0, false},
		{list{"5"}, 0, false},
		{embedding{}, 0, false},
	} {
		if n, ok := integer(reflect.ValueOf(c.err), "Code"); n != c.want || ok != c.ok {
			t.Errorf("%#v: %d %v", c.err, n, ok)
		}
	}
}
