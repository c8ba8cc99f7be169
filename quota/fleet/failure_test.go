package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// The board is lost, and comes back with nothing.
func TestBoardComesBackEmpty(t *testing.T) {
	for _, gone := range []time.Duration{300 * ms, 3 * time.Second} {
		s := newService(t, 20, mail(1000), skewed(3000))
		s.events = func(at time.Duration) {
			switch at {
			case 5 * time.Second:
				s.board = nil
			case 5*time.Second + gone:
				s.board = NewMemory(s.now)
			}
		}
		s.run(14 * time.Second)
		least, most := s.extremes(4*time.Second, 14*time.Second)
		within(t, gone.String()+": least second", least/1000, 0.85, 1)
		within(t, gone.String()+": most second", most/1000, 1, 1.15)
		for i, n := range s.nodes {
			if st := n.fleet.Stats(s.now()); st.Epoch != 2 || st.Age > 2*n.fleet.cfg.Interval {
				t.Errorf("task %d: %+v, want levels of epoch 2", i, st)
			}
		}
	}
}

// The board is away and comes back with its reports, as a replica that is promoted. The tasks
// reconnect one after another. What they used meanwhile is no debt of the seconds that follow.
func TestBoardComesBackWithOldReports(t *testing.T) {
	for _, gone := range []time.Duration{time.Second, 1500 * ms, 3 * time.Second, 5 * time.Second} {
		for _, apart := range []time.Duration{0, 50 * ms, 100 * ms} {
			s := newService(t, 20, mail(1000), skewed(3000))
			s.events = func(at time.Duration) {
				for i, n := range s.nodes {
					n.link.cut = at >= 5*time.Second && at < 5*time.Second+gone+time.Duration(i)*apart
				}
			}
			s.run(14 * time.Second)
			least, most := s.extremes(4*time.Second, 14*time.Second)
			what := fmt.Sprintf("%v, %v apart: ", gone, apart)
			within(t, what+"least second", least/1000, 0.85, 1.03)
			within(t, what+"most second", most/1000, 0.97, 1.15)
		}
	}
}

// The board is gone for good. Later demand moves to other tasks, whose buckets may be full.
func TestBoardGoneForGood(t *testing.T) {
	for _, demand := range []float64{900, 3000} {
		s := newService(t, 20, mail(1000), func(i int, at time.Duration) []stream {
			if at > 18*time.Second {
				i = 19 - i
			}
			return skewed(demand)(i, at)
		})
		s.events = func(at time.Duration) {
			if at == 5*time.Second {
				s.board = nil
			}
		}
		s.run(30 * time.Second)
		least, most := s.extremes(5*time.Second, 18*time.Second)
		within(t, "least second", least/1000, 0.5, 1)
		within(t, "most second", most/1000, 0, 1.1)
		within(t, "after the move", s.admitted(18*time.Second, 30*time.Second)/1000, 0.5, 1.05)
		for i := range s.nodes {
			c := s.sum(20*time.Second, 30*time.Second, func(k int) bool { return k == i })
			if total(c.admitted) < min(demand*zipf(19-i), 50)*0.8 {
				t.Errorf("task %d admits %v of %v", i, total(c.admitted), demand*zipf(19-i))
			}
		}
	}
}

// A board that is lost while demand is low does not leave behind grants for a burst.
func TestDemandRisesWithoutBoard(t *testing.T) {
	s := newService(t, 20, mail(1000), func(i int, at time.Duration) []stream {
		if at < 6*time.Second {
			return even(300, 20)(i, at)
		}
		return even(3000, 20)(i, at)
	})
	s.events = func(at time.Duration) {
		if at == 5*time.Second {
			s.board = nil
		}
	}
	s.run(20 * time.Second)
	within(t, "admitted but for the first burst", s.admitted(8*time.Second, 20*time.Second)/1000, 0.9, 1.1)
}

// Half of the tasks lose the board, for longer than Grace. The others take over their share
// then, and not more.
func TestHalfOfTheTasksAreCutOff(t *testing.T) {
	for _, demand := range []float64{2000, 3000, 6000} {
		s := newService(t, 20, mail(1000), even(demand, 20))
		s.events = func(at time.Duration) {
			for _, n := range s.nodes[:10] {
				n.link.cut = at >= 5*time.Second && at < 20*time.Second
			}
		}
		s.run(30 * time.Second)
		within(t, "until Grace", s.admitted(5*time.Second, 15*time.Second)/1000, 0.92, 1.05)
		_, most := s.extremes(5*time.Second, 15*time.Second)
		within(t, "most second until Grace", most/1000, 0.9, 1.05)
		within(t, "from the end of Grace", s.admitted(15*time.Second, 20*time.Second)/1000, 1.45, 1.5)
		within(t, "a second later", s.admitted(16*time.Second, 20*time.Second)/1000, 1.45, 1.5)
		within(t, "healed", s.admitted(22*time.Second, 30*time.Second)/1000, 0.95, 1.02)
	}
}

// The demand is all at the tasks that are cut off, and comes to the others too.
func TestAllDemandIsCutOff(t *testing.T) {
	s := newService(t, 20, mail(1000), func(i int, at time.Duration) []stream {
		if i < 10 || at > 5*time.Second {
			return even(4000, 20)(i, at)
		}
		return nil
	})
	s.events = func(at time.Duration) {
		for _, n := range s.nodes[:10] {
			n.link.cut = at >= 4*time.Second
		}
	}
	s.run(14 * time.Second)
	within(t, "until Grace", s.admitted(5*time.Second, 14*time.Second)/1000, 0.9, 1.12)
}

// Five of twenty tasks crash without a goodbye; their load goes to the others.
func TestCrash(t *testing.T) {
	s := newService(t, 20, mail(1000), func(i int, at time.Duration) []stream {
		if at >= 5*time.Second {
			return even(2000, 15)(i, at)
		}
		return even(2000, 20)(i, at)
	})
	s.events = func(at time.Duration) {
		for _, n := range s.nodes[:5] {
			n.down = at >= 5*time.Second
		}
	}
	s.run(22 * time.Second)
	within(t, "until Grace", s.admitted(5*time.Second, 15*time.Second)/1000, 0.7, 1.02)
	within(t, "after Grace", s.admitted(18*time.Second, 22*time.Second)/1000, 0.96, 1.03)
	_, most := s.extremes(5*time.Second, 22*time.Second)
	within(t, "most second", most/1000, 0, 1.25)
	if tasks := s.nodes[19].fleet.Stats(s.now()).Tasks; tasks != 15 {
		t.Errorf("the leader knows of %d tasks, want 15", tasks)
	}
}

// Tasks crash again and again, and come back under other names. They do not hold the share of each name
// until Grace.
func TestCrashLoop(t *testing.T) {
	for _, row := range []struct {
		tasks       int
		every       time.Duration
		named       bool // the same as before
		least, most float64
	}{
		{1, 2 * time.Second, false, 0.94, 1.02},
		{5, 2 * time.Second, false, 0.8, 1.02},
		{5, 2 * time.Second, true, 0.94, 1.05},
		{20, 30 * time.Second, false, 0.88, 1.02}, // all within two seconds
	} {
		s := newService(t, 20, mail(1000), even(2000, 20))
		slots := slices.Clone(s.nodes)
		s.events = func(at time.Duration) {
			for i := range row.tasks {
				if at < 5*time.Second || (at+time.Duration(i)*100*ms)%row.every != 0 {
					continue
				}
				slots[i].down = true
				if row.named {
					slots[i] = s.startAs(slots[i].fleet.task)
				} else {
					slots[i] = s.start()
				}
			}
		}
		s.run(60 * time.Second)
		within(t, fmt.Sprintf("%d of 20 tasks crash every %v, named again: %v", row.tasks, row.every, row.named),
			s.admitted(25*time.Second, 60*time.Second)/1000, row.least, row.most)
	}
}

// The leader crashes, and is back under the same name before its lease is over. It leads the same epoch, in which the
// tasks have heard a hundred levels: they must not take its next ones for older ones.
func TestLeaderIsBackAtOnce(t *testing.T) {
	s := newService(t, 20, mail(1000), func(i int, at time.Duration) []stream { return skewed(1200)(i%20, at) })
	s.events = func(at time.Duration) {
		if at != 20*time.Second {
			return
		}
		leader := s.nodes[0]
		if !leader.fleet.Stats(s.now()).Leader {
			t.Fatal("the first task does not lead")
		}
		leader.down = true
		s.startAs(leader.fleet.task)
	}
	s.run(36 * time.Second)
	within(t, "admitted", s.admitted(24*time.Second, 36*time.Second)/1000, 0.95, 1.03)
	for i, n := range s.nodes[1:] {
		if st := n.fleet.Stats(s.now()); st.Epoch != 1 || st.Age > 2*n.fleet.cfg.Interval {
			t.Errorf("task %d: %+v, want new levels of epoch 1", i+1, st)
		}
	}
}

// The same with a goodbye: the share is free at once.
func TestLeave(t *testing.T) {
	s := newService(t, 20, mail(1000), func(i int, at time.Duration) []stream {
		if at >= 5*time.Second {
			return even(2000, 15)(i, at)
		}
		return even(2000, 20)(i, at)
	})
	s.events = func(at time.Duration) {
		if at == 5*time.Second {
			for _, n := range s.nodes[:5] { // one of them leads
				n.down = true
				if err := n.fleet.Leave(context.Background(), n.link); err != nil {
					t.Error(err)
				}
			}
		}
	}
	s.run(10 * time.Second)
	within(t, "admitted", s.admitted(7*time.Second, 10*time.Second)/1000, 0.95, 1.06)
}

// Ten tasks join ten others, and double the load. As with one bucket for all, its one
// second of burst is admitted on top.
func TestJoin(t *testing.T) {
	s := newService(t, 10, mail(1000), func(int, time.Duration) []stream { return even(1000, 10)(0, 0) })
	s.run(5 * time.Second)
	for range 10 {
		s.start()
	}
	s.run(10 * time.Second)
	_, most := s.extremes(2*time.Second, 10*time.Second)
	within(t, "most second", most/1000, 0.9, 2)
	within(t, "with the burst", s.admitted(5*time.Second, 10*time.Second)/1000, 1, 1.2)
	joined := s.sum(7*time.Second, 10*time.Second, func(i int) bool { return i >= 10 })
	within(t, "part of those that joined", total(joined.admitted)/1000, 0.4, 0.6)
}

// The leader hangs before it publishes, time and again. What it publishes when another
// leads is rejected, and no task takes it.
func TestLateWordOfALeader(t *testing.T) {
	s := newService(t, 20, mail(1000), skewed(3000))
	hung, late := -1, 0
	s.events = func(at time.Duration) {
		switch at % (3 * time.Second) {
		case 2 * time.Second:
			for i, n := range s.nodes {
				if n.fleet.Stats(s.now()).Leader {
					hung = i
					n.link.hold = true
				}
			}
		case 2*time.Second + 300*ms:
			s.nodes[hung].down = true // for two seconds
		case time.Second:
			if hung < 0 {
				return
			}
			n := s.nodes[hung]
			for _, p := range n.link.held {
				if err := n.link.board.Publish(context.Background(), p); !errors.Is(err, ErrFenced) {
					t.Errorf("at %v: publishing late: %v, want ErrFenced", at, err)
				}
				late++
			}
			n.link.hold, n.link.held, n.down = false, nil, false
		}
	}
	s.run(14 * time.Second)
	if late < 4 {
		t.Errorf("only %d publications were late", late)
	}
	_, most := s.extremes(2*time.Second, 14*time.Second)
	within(t, "most second", most/1000, 0.7, 1.15)
	within(t, "epochs", float64(s.nodes[0].fleet.Stats(s.now()).Epoch), 4, 6)
}

// Clocks of the tasks are up to an hour apart.
func TestClocksApart(t *testing.T) {
	s := newService(t, 0, mail(1000), skewed(3000))
	for i := range 20 {
		s.start().skew = time.Duration(i-10) * 6 * time.Minute
	}
	s.run(12 * time.Second)
	within(t, "admitted", s.admitted(4*time.Second, 12*time.Second)/1000, 0.97, 1.01)
}

// The host of the board is lost, and the leader with it. The clock of the host that takes over is an hour behind: by that clock
// the lease of the leader has an hour left, for which the tasks must not wait.
func TestLeaderIsLostWithTheClockOfTheBoard(t *testing.T) {
	step := time.Duration(0)
	s := newService(t, 20, mail(1000), skewed(1200))
	s.board.now = func() time.Time { return s.now().Add(step) }
	s.events = func(at time.Duration) {
		if at == 5*time.Second {
			step = -time.Hour
			s.nodes[0].down = true
		}
	}
	s.run(10 * time.Second)
	for i, n := range s.nodes[1:] {
		if st := n.fleet.Stats(s.now()); st.Epoch != 2 || st.Age > 2*n.fleet.cfg.Interval {
			t.Errorf("task %d: %+v, want levels of epoch 2", i+1, st)
		}
	}
}

// The clock of the board steps by an hour, forward and back.
func TestBoardClockSteps(t *testing.T) {
	step := time.Duration(0)
	s := newService(t, 20, mail(1000), skewed(3000))
	s.board.now = func() time.Time { return s.now().Add(step) }
	s.events = func(at time.Duration) {
		switch at {
		case 5 * time.Second:
			step = time.Hour
		case 9 * time.Second:
			step = -time.Hour
		}
	}
	s.run(14 * time.Second)
	least, most := s.extremes(4*time.Second, 14*time.Second)
	within(t, "least second", least/1000, 0.85, 1)
	within(t, "most second", most/1000, 0.9, 1.15)
}

// A panic in the work of a leader passes the locks of the Fleet, whose caller can recover.
func TestLeaderPanics(t *testing.T) {
	f, err := New(mail(1000))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	said := f.say(now)
	f.table, f.epoch = &Table{cfg: f.cfg}, 7 // one without its maps
	func() {
		defer func() {
			if recover() == nil {
				t.Error("it does not panic")
			}
		}()
		_, _, _ = f.hear(now, Heard{Epoch: 7, Leader: true, Reports: []Stamped{{Task: "a", Report: said.Report}}})
	}()
	f.Stats(now) // which takes the lock
}

// A task that has left the board, and syncs again, has its share again: a stream without buckets leaves, and comes back with them.
func TestBackAfterLeave(t *testing.T) {
	away := func(at time.Duration) bool { return at >= 5*time.Second && at < 10*time.Second }
	s := newService(t, 20, mail(1000), func(i int, at time.Duration) []stream {
		if away(at) {
			return even(2000, 15)(i, at)
		}
		return even(2000, 20)(i, at)
	})
	s.events = func(at time.Duration) {
		for _, n := range s.nodes[:5] {
			if away(at) && !n.down {
				if err := n.fleet.Leave(context.Background(), n.link); err != nil {
					t.Error(err)
				}
			}
			n.down = away(at)
		}
	}
	s.run(15 * time.Second)
	within(t, "while some were away", s.admitted(7*time.Second, 10*time.Second)/1000, 0.95, 1.06)
	within(t, "after they are back", s.admitted(12*time.Second, 15*time.Second)/1000, 0.95, 1.06)
	for _, n := range s.nodes[:5] {
		if st := n.fleet.Stats(s.now()); st.Tasks != 20 {
			t.Errorf("%d tasks share the quota, want 20", st.Tasks)
		}
	}
}
