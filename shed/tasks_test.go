package shed_test

import (
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/thorough"
)

// A userTask is the task of a user: calls that are all needed, one after the other or all at once.
type userTask struct {
	calls  int
	level  spillway.Level
	class  spillway.Criticality
	atOnce bool
	served int
	failed bool
	open   []*request
	came   time.Time
	ended  func(*userTask)
}

// begin makes the first call of a userTask, or all of them.
func (s *server) begin(task *userTask) {
	task.came = s.now
	if !task.atOnce {
		s.request(task)
		return
	}
	for range task.calls {
		s.request(task)
	}
}

func (s *server) request(task *userTask) {
	r := &request{arrived: s.now, class: task.class, handler: s.handler, level: task.level, progress: spillway.Progress(task.served), task: task}
	r.waiter.Owner = r
	if s.vary != nil {
		r.handler = s.vary()
	}
	task.open = append(task.open, r)
	s.count(&s.offered, r)
	s.spawn(examining, func() {
		if !task.failed {
			s.examine(r)
		}
	})
}

// follow goes on with the userTask of a request that has ended.
func (s *server) follow(r *request, rejected bool) {
	task := r.task
	switch {
	case task == nil || task.failed:
	case rejected || s.now.Sub(task.came) > time.Second:
		task.failed = true
		for _, other := range task.open {
			if !other.ended && s.shedder.Withdraw(&other.waiter) {
				other.ended = true
			}
		}
	default:
		if task.served++; task.served == task.calls {
			task.ended(task)
		} else if !task.atOnce {
			s.after(ms/10, func() { s.request(task) })
		}
	}
}

// tasks offers tasks of some calls for a while, at load times the capacity, and returns which share of the possible tasks is
// done.
func (s *server) tasks(load, capacity float64, calls int, atOnce bool, length time.Duration) float64 {
	end, done := s.now.Add(length), 0
	from := s.now.Add(2 * time.Second)
	s.ended = s.follow
	var next func()
	next = func() {
		if s.now.After(end) {
			return
		}
		task := &userTask{calls: calls, atOnce: atOnce, level: spillway.Level(1 + s.rand.IntN(spillway.Levels)), class: spillway.Critical}
		task.ended = func(task *userTask) {
			if !s.now.Before(from) {
				done++
			}
		}
		s.begin(task)
		s.after(time.Duration(s.rand.ExpFloat64()/(load*capacity/float64(calls))*float64(time.Second)), next)
	}
	next()
	s.run(end)
	return float64(done) * float64(calls) / (end.Sub(from).Seconds() * capacity)
}

// TestWholeTasks: nearly as many tasks of many calls are done as can be, whether their calls are made in turn or at once.
func TestWholeTasks(t *testing.T) {
	inTurn := map[int]float64{1: 0.97, 2: 0.97, 5: 0.97, 10: 0.97, 20: 0.95}
	atOnce := map[int]float64{1: 0.97, 2: 0.92, 5: 0.88, 10: 0.82, 20: 0.78}
	// A call takes 10 ms of a slot in the mean, so that twenty of them fit into the second that a task may take.
	pool := kind{handler: []phase{{pool: 10 * ms}}, pool: 8, capacity: 800}
	const length = 6 * time.Second
	for name, k := range map[string]kind{"cpu": computing, "pool": pool} {
		for wanted, atOnce := range map[*map[int]float64]bool{&inTurn: false, &atOnce: true} {
			for calls, want := range *wanted {
				for _, load := range []float64{1.2, 2, 4} {
					if !thorough.Enabled() && (calls != 10 || load < 2) || name == "pool" && load < 2 && calls == 20 {
						continue // the last ones take half a second, and the queue of a pool is found after ten
					}
					s := k.server(t, 4, 1)
					s.deadline = time.Second
					s.pool *= 4
					s.vary = func() []phase {
						p := s.handler[0]
						f := s.rand.ExpFloat64()
						return []phase{{cpu: time.Duration(float64(p.cpu) * f), pool: time.Duration(float64(p.pool) * f)}}
					}
					got := s.tasks(load, 4*k.capacity, calls, atOnce, length)
					t.Logf("%s, %d calls, at once: %v, %vx: %.3f", name, calls, atOnce, load, got)
					if got < want*left(load) {
						t.Errorf("%s, %d calls, at once: %v, %vx: %.3f of the tasks that can be done, want %v", name, calls, atOnce, load, got, want)
					}
				}
			}
		}
	}
}
