package client

import (
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// An account that is missing is asked for twice a minute, for all of its plans at once, and all that
// are known to be missing about ten times a second (guesses). The agent may get ServiceAccounts, and
// not watch them.
const (
	MissingPause = 30 * time.Second
	missingShare = 100 * time.Millisecond
	maxMissing   = 10000
)

// MissingAccounts are those that were not there when they were last asked for, and when that was.
type MissingAccounts struct {
	mu    sync.Mutex
	asked *lru.Cache[Account, time.Time]
}

// NewMissingAccounts has asked for none.
func NewMissingAccounts() *MissingAccounts {
	asked, _ := lru.New[Account, time.Time](maxMissing) // its error is for limits below one
	return &MissingAccounts{asked: asked}
}

// Recently says whether an account was missing a short while ago.
func (m *MissingAccounts) Recently(w Account, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	pause := max(MissingPause, time.Duration(m.asked.Len())*missingShare)
	for _, at, is := m.asked.GetOldest(); is && now.After(at.Add(pause+MissingPause)); _, at, is = m.asked.GetOldest() {
		m.asked.RemoveOldest() // no plan has asked for it any more
	}
	at, is := m.asked.Peek(w)
	return is && now.Before(at.Add(pause))
}

// Note takes in whether an account is there.
func (m *MissingAccounts) Note(w Account, missing bool, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if missing {
		m.asked.Add(w, now)
		return
	}
	m.asked.Remove(w)
}
