package redisreply

import (
	"errors"
	"testing"

	"github.com/seed90641741/spillway/fault"
)

func TestMeaning(t *testing.T) {
	for _, row := range []struct {
		text     string
		overload bool
		again    bool // a write
	}{
		{"BUSY a script", true, true},
		{"BUSYGROUP exists", false, false},
		{"OOM command not allowed", true, false},
		{"ERR max number of clients reached", true, true},
		{"max number of clients reached", true, true}, // as rueidis has it
		{"LOADING the dataset", false, true},
		{"TRYAGAIN", false, true},
		{"MOVED 1 127.0.0.1:1", false, false},
		{"", false, false},
		{" ", false, false},
	} {
		f := Meaning(row.text)
		if f.Overload != row.overload || f.Retryable(false) != row.again {
			t.Errorf("%q: %+v", row.text, f)
		}
	}
}

func TestWorst(t *testing.T) {
	loading, busy, multi := errors.New("LOADING x"), errors.New("BUSY x"), errors.New("MULTI")
	for _, row := range []struct {
		answers  []error
		executed bool
		worst    error
	}{
		{nil, false, nil},
		{[]error{nil, nil}, true, nil},
		{[]error{loading, busy, loading}, false, busy},
		{[]error{busy, nil}, true, busy},
		{[]error{multi, loading}, false, loading},
	} {
		executed, worst := Worst(len(row.answers), func(i int) (fault.Failure, error) {
			switch err := row.answers[i]; err {
			case nil:
				return fault.Failure{}, nil
			case multi:
				return fault.Failure{Unprocessed: true}, nil
			default:
				return Meaning(err.Error()), err
			}
		})
		if executed != row.executed || worst != row.worst {
			t.Errorf("%v: %v, %v", row.answers, executed, worst)
		}
	}
}

func FuzzMeaning(f *testing.F) {
	f.Add("BUSY x")
	f.Fuzz(func(t *testing.T, text string) {
		if m := Meaning(text); m.Overload && m.Canceled || Redirect(text) && m.Overload {
			t.Errorf("%q: %+v", text, m)
		}
	})
}
