package ratelimit

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// lockFree is the least limiter: without a queue, without change of parameters, and with
// a clock that never steps back.
type lockFree struct {
	interval, burst          time.Duration
	full, at                 atomic.Int64
	admitted, rejected, base atomic.Int64
}

func (l *lockFree) admit(now time.Time) bool {
	at := now.UnixNano() - l.base.Load()
	for {
		latest := l.at.Load()
		if at <= latest {
			at = latest
			break
		}
		if l.at.CompareAndSwap(latest, at) {
			break
		}
	}
	for {
		full := l.full.Load()
		next := max(full, at) + int64(l.interval)
		if next-at > int64(l.burst) {
			l.rejected.Add(1)
			return false
		}
		if l.full.CompareAndSwap(full, next) {
			l.admitted.Add(1)
			return true
		}
	}
}

func peers(b *testing.B, c Config) map[string]func(time.Time) bool {
	l := must(b, c)
	_, terms := l.bucket.load()
	free := &lockFree{interval: terms.interval, burst: terms.burst}
	free.base.Store(time.Now().UnixNano())
	return map[string]func(time.Time) bool{
		"limiter":  func(now time.Time) bool { _, err := l.Admit(now, spillway.Call{}); return err == nil },
		"lockfree": free.admit,
	}
}

// admitting lets all in that come a microsecond apart; rejecting all but one.
var admitting, rejecting = Config{Rate: 1e6}, Config{Rate: 1e-4}

var names = []string{"limiter", "lockfree"}

func BenchmarkAdmit(b *testing.B)          { serial(b, admitting) }
func BenchmarkAdmitParallel(b *testing.B)  { parallel(b, admitting) }
func BenchmarkReject(b *testing.B)         { serial(b, rejecting) }
func BenchmarkRejectParallel(b *testing.B) { parallel(b, rejecting) }

func serial(b *testing.B, c Config) {
	for _, name := range names {
		b.Run(name, func(b *testing.B) {
			admit, now := peers(b, c)[name], time.Now() // with a monotonic reading, as in production
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(time.Microsecond)
				admit(now)
			}
		})
	}
}

func parallel(b *testing.B, c Config) {
	for _, name := range names {
		b.Run(name, func(b *testing.B) {
			admit := peers(b, c)[name]
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				now := time.Now()
				for pb.Next() {
					now = now.Add(time.Microsecond)
					admit(now)
				}
			})
		})
	}
}

func BenchmarkReserveGiveUp(b *testing.B) {
	l := must(b, Config{Rate: 1000, BurstSeconds: 0.001, QueueDepth: 1})
	_, _ = l.Reserve(t0)
	b.ReportAllocs()
	for b.Loop() {
		r, _ := l.Reserve(t0)
		r.End(t0)
	}
}
