package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
)

func TestHowLongAnotherClusterIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, far := newFarWorld(t), stg()
		hold := make(chan struct{})
		ask := func(on *client.Cluster, question func(context.Context) (string, error)) (string, error) {
			return client.Ask(t.Context(), w.accounts, maintRunner(), "", on, func(ctx context.Context, _ client.ClusterAccess) (string, error) { return question(ctx) })
		}
		holds := func(context.Context) (string, error) { <-hold; return "late", nil }
		quick := func(context.Context) (string, error) { return "here", nil }
		wants := func(when string, err error, says string) {
			t.Helper()
			var away *client.UnavailableError
			if !errors.As(err, &away) || !strings.Contains(err.Error(), "K8SCluster stg: "+says) {
				t.Errorf("%s: %v", when, err)
			}
		}
		if got, err := ask(&far, quick); got != "here" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		began := time.Now()
		_, err := ask(&far, holds)
		if wants("one that holds its questions", err, "it did not answer within 5s"); time.Since(began) != 5*time.Second {
			t.Errorf("it was waited for %s", time.Since(began))
		}
		_, err = ask(&far, quick)
		wants("a moment later it is left alone", err, "it did not answer within 5s")
		for range 3 {
			time.Sleep(20 * time.Second)
			_, err = ask(&far, holds)
			wants("asked again after a while", err, "it did not answer")
		}
		time.Sleep(20 * time.Second)
		_, err = ask(&far, quick)
		wants("four questions are open still", err, "it is asked for other plans just now")
		if got, err := ask(nil, quick); got != "here" || err != nil {
			t.Errorf("the plan's own cluster: %q, %v", got, err)
		}
		close(hold)
		synctest.Wait()
		if got, err := ask(&far, quick); got != "here" || err != nil {
			t.Errorf("once they were answered: %q, %v", got, err)
		}
		refused := errors.New("no")
		if _, err := ask(&far, func(context.Context) (string, error) { return "", refused }); !errors.Is(err, refused) {
			t.Errorf("what it answers is handed on: %v", err)
		}
	})
}

func TestAnObjectIsToldApartFromThoseOfOtherClusters(t *testing.T) {
	w, far := newFarWorld(t), stg()
	home, err := w.accounts.Access(t.Context(), maintRunner(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	there, err := w.accounts.Access(t.Context(), maintRunner(), "", &far)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := home.Where().UID("u"), there.Where().UID("u"); a != "u" || b == a || !strings.HasPrefix(string(b), "u@") {
		t.Errorf("here %q, there %q", a, b)
	}
	if home.Actor() != runner || there.Actor() != "the account of K8SCluster stg" {
		t.Errorf("here as %q, there as %q", home.Actor(), there.Actor())
	}
}
