package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// profiles begins CPU profiles of the agent and of the API server where they
// were asked for; the function returned waits for them and takes those that
// are read at the end.
func (b *bench) profiles(ctx context.Context, a *agent, k kind) func() error {
	if b.profile == "" {
		return func() error { return nil }
	}
	const seconds = "10"
	name := fmt.Sprintf("%s-%d", k.name, len(b.samples[k.name])+1)
	var group sync.WaitGroup
	var errs [2]error
	group.Go(func() { errs[0] = b.saveAgent(ctx, a, name+"-agent-cpu", "profile?seconds="+seconds) })
	group.Go(func() {
		body, err := b.admin.CoreV1().RESTClient().Get().AbsPath("/debug/pprof/profile").Param("seconds", seconds).Stream(ctx)
		if err == nil {
			err = b.save(name+"-apiserver-cpu", body)
		}
		errs[1] = err
	})
	return func() error {
		group.Wait()
		return errors.Join(errs[0], errs[1], b.saveAgent(ctx, a, name+"-agent-heap", "heap"),
			b.saveAgent(ctx, a, name+"-agent-mutex", "mutex"), b.saveAgent(ctx, a, name+"-agent-block", "block"))
	}
}

func (b *bench) saveAgent(ctx context.Context, a *agent, name, which string) error {
	body, err := a.get(ctx, "/debug/pprof/"+which)
	if err != nil {
		return err
	}
	return b.save(name, body)
}

func (b *bench) save(name string, body io.ReadCloser) error {
	defer body.Close()
	file, err := os.Create(filepath.Join(b.profile, name+".pprof"))
	if err != nil {
		return err
	}
	_, err = io.Copy(file, body)
	return errors.Join(err, file.Close())
}
