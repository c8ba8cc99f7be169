package fleet_test

import (
	"testing"
	"time"

	"github.com/seed90641741/spillway/quota/fleet"
	"github.com/seed90641741/spillway/quota/fleet/boardtest"
)

// swap is a board that can be replaced by an empty one.
type swap struct{ fleet.Board }

func TestMemory(t *testing.T) {
	at := time.Unix(1e9, 0)
	now := func() time.Time { return at }
	boardtest.Run(t, boardtest.Kit{
		New:  func(*testing.T) fleet.Board { return &swap{fleet.NewMemory(now)} },
		Wait: func(d time.Duration) { at = at.Add(d) },
		Lose: func(b fleet.Board) { b.(*swap).Board = fleet.NewMemory(now) },
	})
}
