package follow

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

func TestAWatchOfADrainThatIsSilentEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := watch.NewFake()
		w := doubted(from, time.Minute)
		for range 3 {
			time.Sleep(50 * time.Second)
			from.Action(watch.Bookmark, nil)
			if event, open := <-w.ResultChan(); !open || event.Type != watch.Bookmark {
				t.Fatalf("%v %t", event, open)
			}
		}
		began := time.Now()
		if _, open := <-w.ResultChan(); open || time.Since(began) != time.Minute {
			t.Errorf("it ended after %s", time.Since(began))
		}
		w.Stop()
		w.Stop()
		if !from.IsStopped() {
			t.Error("the watch behind it stays open")
		}
	})
}

func TestAWatchOfADrainThatIsStoppedEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := watch.NewFake()
		w := doubted(from, time.Minute)
		go from.Action(watch.Bookmark, nil)
		synctest.Wait() // it waits to be read
		w.Stop()
		synctest.Wait()
		if !from.IsStopped() {
			t.Error("the watch behind it stays open")
		}
	})
}
