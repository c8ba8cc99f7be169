package resources

import (
	"sync"
	"sync/atomic"
)

// Users counts users. The zero Users is ready for use. It is safe for concurrent use.
type Users struct {
	n    atomic.Int64 // retired is added when no more may come
	most atomic.Int64 // of n, since it was last asked for
	once sync.Once
	make sync.Once
	none chan struct{}
}

const retired = -1 << 40

func (u *Users) gone() chan struct{} {
	u.make.Do(func() { u.none = make(chan struct{}) })
	return u.none
}

// Enter reports whether the resource may still be used. If so, Leave must be called.
func (u *Users) Enter() bool {
	if n := u.n.Add(1); n > 0 {
		u.raise(n)
		return true
	}
	u.Leave()
	return false
}

// Leave ends a use. It must be called once for each Enter that returned true.
func (u *Users) Leave() {
	if u.n.Add(-1) == retired {
		u.once.Do(func() { close(u.gone()) })
	}
}

func (u *Users) raise(n int64) {
	for {
		most := u.most.Load()
		if n <= most || u.most.CompareAndSwap(most, n) {
			return
		}
	}
}

// Count returns the number of users.
func (u *Users) Count() int {
	n := u.n.Load()
	if n < 0 {
		n -= retired
	}
	return int(n)
}

// Peak returns the largest number of users since it was last called.
func (u *Users) Peak() int { return max(int(u.most.Swap(0)), u.Count()) }

// Retired reports whether Retire was called.
func (u *Users) Retired() bool { return u.n.Load() < 0 }

// Retire rejects new users, and returns a channel that is closed when all have left.
func (u *Users) Retire() <-chan struct{} {
	u.n.Add(retired + 1)
	u.Leave()
	return u.gone()
}
