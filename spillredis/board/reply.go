package board

import (
	"errors"
	"strconv"
	"time"

	"github.com/seed90641741/spillway/quota/fleet"
)

// stampSize is the length of the time in front of a stored report.
const stampSize = 16

var errReply = errors.New("not as the script of this version makes it; does another program write these keys?")

// parse reads the reply of syncScript.
func parse(reply []any) (h fleet.Heard, err error) {
	if len(reply) < 3 || len(reply) > 7 { // nil at the end may be left out
		return h, errReply
	}
	now, ok := micros(reply[0])
	epoch, isText := reply[1].(string)
	leads, isNumber := reply[2].(int64)
	if !ok || !isText || !isNumber {
		return h, errReply
	}
	h.Now, h.Leader = now, leads == 1
	if h.Epoch, err = strconv.ParseUint(epoch, 10, 64); err != nil {
		return h, errReply
	}
	if len(reply) > 3 && reply[3] != nil {
		levels, ok := reply[3].(string)
		if !ok {
			return h, errReply
		}
		h.Levels = []byte(levels)
	}
	if len(reply) > 4 && reply[4] != nil {
		if h.Reports, err = reports(reply[4]); err != nil {
			return h, err
		}
	}
	if len(reply) > 5 {
		h.Task, _ = reply[5].(string)
	}
	if len(reply) > 6 {
		h.Since, _ = micros(reply[6]) // zero from the script of another version
	}
	return h, nil
}

// micros reads a time of the server.
func micros(x any) (time.Duration, bool) {
	text, _ := x.(string)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > 1<<53 {
		return 0, false
	}
	return time.Duration(n) * time.Microsecond, true // below 2^53 it does not overflow: 285 years
}

// reports reads the hash of reports. A field that is none is left out, such as that of its beginning.
func reports(x any) ([]fleet.Stamped, error) {
	fields, ok := x.([]any)
	if !ok || len(fields)%2 != 0 {
		return nil, errReply
	}
	all := make([]fleet.Stamped, 0, len(fields)/2)
	for i := 0; i < len(fields); i += 2 {
		task, _ := fields[i].(string)
		value, _ := fields[i+1].(string)
		if task == "" || len(value) < stampSize {
			continue
		}
		if at, ok := micros(value[:stampSize]); ok {
			all = append(all, fleet.Stamped{Task: task, At: at, Report: []byte(value[stampSize:])})
		}
	}
	return all, nil
}
