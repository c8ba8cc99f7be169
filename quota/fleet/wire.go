package fleet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/seed90641741/spillway"
)

// These bound what is read from a board. They are far above what any service needs, and so low that
// arithmetic on the values neither overflows nor loses a unit.
const (
	maxName     = 255       // bytes: the length is one byte
	maxTasks    = 1_000_000 // number of tasks
	maxEntries  = 1 << 17   // customers in one message
	maxEpoch    = 1 << 48   // exact as a float64, with which scripts of boards count
	maxAmount   = 1e15      // a cost, or a cost per second
	wireVersion = 1
)

var (
	errShort = errors.New("message ends too early")
	errRange = errors.New("value out of range")
)

// A usage is what a task reports about a customer.
type usage struct {
	name  string
	age   uint64                          // number of earlier reports in a row that had it
	used  float64                         // cost since the first of these reports
	wants [spillway.Criticalities]float64 // cost per second by class
}

// A report has a header and any number of usages.
type report struct {
	incarnation uint64 // random; made when the task starts
	seq         uint64 // number of the report, from 1 on
	config      uint64 // hash of the limits
}

// newReport returns a message with the header.
func newReport(r report) []byte {
	b := []byte{wireVersion}
	b = binary.LittleEndian.AppendUint64(b, r.incarnation)
	b = binary.LittleEndian.AppendUint64(b, r.seq)
	return binary.LittleEndian.AppendUint64(b, r.config)
}

// appendUsage adds a customer to a message: length and name, the classes with demand, age, use, and
// the demand of each of these classes.
func appendUsage(b []byte, u *usage) []byte {
	b = append(b, byte(len(u.name)))
	b = append(b, u.name...)
	mask := len(b)
	b = binary.AppendUvarint(append(b, 0), u.age)
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(clampAmount(u.used)))
	for class, w := range u.wants {
		if w > 0 {
			b[mask] |= 1 << class
			b = appendFloat(b, w)
		}
	}
	return b
}

// clampAmount limits a sum to the range that readers accept.
func clampAmount(x float64) float64 { return min(max(x, -maxAmount), maxAmount) }

func appendFloat(b []byte, x float64) []byte {
	return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(clampAmount(x))))
}

// A reader reads values from a message. After the first error all values are zero.
type reader struct {
	b   []byte
	err error
}

func (r *reader) take(n int) []byte {
	if r.err == nil && len(r.b) < n {
		r.err = errShort
	}
	if r.err != nil {
		return make([]byte, n)
	}
	taken := r.b[:n]
	r.b = r.b[n:]
	return taken
}

func (r *reader) byte() byte   { return r.take(1)[0] }
func (r *reader) u32() uint32  { return binary.LittleEndian.Uint32(r.take(4)) }
func (r *reader) u64() uint64  { return binary.LittleEndian.Uint64(r.take(8)) }
func (r *reader) name() []byte { return r.take(int(r.byte())) }

// amount reads a cost, which is finite and not negative.
func (r *reader) amount() float64 { return r.within(float64(math.Float32frombits(r.u32())), 0) }

// within returns x, which must be in the range from least to maxAmount, with a tolerance for
// rounding.
func (r *reader) within(x, least float64) float64 {
	if r.err == nil && !(x >= least && x <= 1.001*maxAmount) {
		r.err = errRange
	}
	if r.err != nil {
		return 0
	}
	return x
}

// version reads the first byte of a message.
func (r *reader) version() {
	if v := r.byte(); r.err == nil && v != wireVersion {
		r.err = fmt.Errorf("version is %d, must be %d", v, wireVersion)
	}
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if r.err == nil && n <= 0 {
		r.err = errShort
	}
	if r.err != nil {
		return 0
	}
	r.b = r.b[n:]
	return v
}

// parseReport reads a report, and calls each for every usage. The name is valid only during the
// call.
func parseReport(b []byte, each func(name []byte, u *usage)) (report, error) {
	r := &reader{b: b}
	r.version()
	head := report{incarnation: r.u64(), seq: r.u64(), config: r.u64()}
	if r.err == nil && head.seq == 0 {
		r.err = errRange
	}
	var u usage
	for n := 0; r.err == nil && len(r.b) > 0; n++ {
		if n == maxEntries {
			return head, fmt.Errorf("fleet: report: more than %d customers", maxEntries)
		}
		name := r.usage(&u)
		if r.err == nil {
			each(name, &u)
		}
	}
	if r.err != nil {
		return head, fmt.Errorf("fleet: report: %w", r.err)
	}
	return head, nil
}

func (r *reader) usage(u *usage) (name []byte) {
	name = r.name()
	mask := r.byte()
	u.age = r.uvarint()
	u.used = r.within(math.Float64frombits(r.u64()), -maxAmount)
	for class := range u.wants {
		u.wants[class] = 0
		if mask&(1<<class) != 0 {
			u.wants[class] = r.amount()
		}
	}
	return name
}

func encodeLevels(l *Levels) []byte {
	b := []byte{wireVersion}
	b = binary.LittleEndian.AppendUint64(b, l.Epoch)
	b = binary.LittleEndian.AppendUint64(b, l.Seq)
	b = binary.LittleEndian.AppendUint64(b, l.config)
	b = binary.LittleEndian.AppendUint32(b, uint32(l.Tasks))
	b = appendFloat(b, l.weight)
	b = appendFloat(b, l.unlisted)
	for name, c := range l.customers {
		b = append(b, byte(len(name)))
		b = append(b, name...)
		b = append(b, byte(c.Marginal+1))
		b = appendFloat(b, c.Rate)
		b = appendFloat(b, c.Debt)
		b = appendFloat(b, c.Share)
	}
	return b
}

// entryBytes is the approximate length of a customer's entry in levels.
const entryBytes = 24

// parseLevels reads what encodeLevels has written. It does not copy names that before has.
func parseLevels(b []byte, before *Levels) (*Levels, error) {
	r := &reader{b: b}
	r.version()
	l := &Levels{Version: Version{r.u64(), r.u64()}, config: r.u64(), Tasks: int(r.u32()), weight: r.amount(), unlisted: r.amount()}
	if r.err == nil && (l.Epoch == 0 || l.Epoch > maxEpoch || l.Seq == 0 || l.Tasks < 1 || l.Tasks > maxTasks) {
		r.err = errRange
	}
	if r.err == nil {
		l.customers = make(map[string]Level, min(len(r.b)/entryBytes, maxEntries))
	}
	for r.err == nil && len(r.b) > 0 {
		if len(l.customers) == maxEntries {
			return nil, fmt.Errorf("fleet: levels: more than %d customers", maxEntries)
		}
		name := r.name()
		c := Level{Marginal: int(r.byte()) - 1, Rate: r.amount(), Debt: r.amount(), Share: r.amount()}
		if c.Marginal >= spillway.Criticalities && r.err == nil {
			r.err = errRange
		}
		if r.err == nil {
			c.name = before.intern(name)
			l.customers[c.name] = c
		}
	}
	if r.err != nil {
		return nil, fmt.Errorf("fleet: levels: %w", r.err)
	}
	return l, nil
}
