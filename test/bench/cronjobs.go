package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/kubectl-maint/kubectl-maint/test/cluster"
)

// controller is how the CronJob controller of kube-controller-manager is run.
type controller struct {
	name, title string
	args        []string
	limit       time.Duration
}

func untuned() controller {
	return controller{name: "default", title: "CronJobs due at once, controller with its default client limits (20 QPS, 5 workers)", limit: 10 * time.Minute}
}

func tuned() controller {
	return controller{
		name: "tuned", title: "CronJobs due at once, controller with its limits lifted (2000 QPS, 50 workers)", limit: 3 * time.Minute,
		args: []string{"--kube-api-qps=2000", "--kube-api-burst=4000", "--concurrent-cron-job-syncs=50"},
	}
}

// cronJobsDue prints what the rounds of ratios measured of CronJobs, or measures it.
func (b *bench) cronJobsDue(ctx context.Context, out io.Writer) error {
	if len(b.samples[tuned().name]) == 0 {
		for _, c := range append(slices.Repeat([]controller{tuned()}, b.rounds), untuned()) {
			if err := b.cronRound(ctx, c); err != nil {
				return err
			}
		}
	}
	for _, c := range []controller{untuned(), tuned()} {
		table(out, c.title, b.samples[c.name], []figure{
			{"created", "s", "from the minute until all Jobs exist, seen by a watch"},
			{"created-half", "s", "… until half of them"},
			{"all-cpu", "s", "CPU time of API server, etcd and both controller managers, until all Jobs exist"},
		})
	}
	return nil
}

func (b *bench) cronRound(ctx context.Context, c controller) (err error) {
	manager, err := b.startController(ctx, c)
	if err != nil {
		return err
	}
	defer func() {
		manager()
		err = errors.Join(err, b.clearJobs(ctx))
	}()
	slot := nextMinute(b.lead)
	began := time.Now()
	err = each(ctx, b.plans, func(ctx context.Context, i int) error {
		_, err := b.admin.BatchV1().CronJobs(b.namespace(i)).Create(ctx, cronJob(i, slot), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("make CronJobs: %w", err)
	}
	b.say("%s: %d CronJobs made in %.1f s", c.name, b.plans, time.Since(began).Seconds())
	if time.Until(slot) < 2*time.Second {
		return errors.New("the CronJobs were not made before their minute")
	}
	if err := until(ctx, slot.Add(-time.Second)); err != nil {
		return err
	}
	s, err := b.watchJobs(ctx, c, slot)
	if err != nil {
		return err
	}
	b.samples[c.name] = append(b.samples[c.name], s)
	b.say("%s: all Jobs created after %.2f s; load average %s", c.name, s["created"], loadAverage())
	return nil
}

// cronJob makes Jobs that are suspended: the pods do not matter.
func cronJob(i int, slot time.Time) *batchv1.CronJob {
	zone, suspended := "Etc/UTC", true
	return &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("cron-%05d", i)},
		Spec: batchv1.CronJobSpec{
			Schedule: fmt.Sprintf("%d %d * * *", slot.Minute(), slot.Hour()), TimeZone: &zone,
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
				Suspend: &suspended,
				Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "example.org/none"}},
				}},
			}},
		},
	}
}

func (b *bench) watchJobs(ctx context.Context, c controller, slot time.Time) (sample, error) {
	jobs, err := observe(ctx, b.admin.BatchV1().Jobs("").Watch, "", func(o runtime.Object) []sight {
		return []sight{{mark: markCreated, key: string(o.(*batchv1.Job).UID)}}
	})
	if err != nil {
		return nil, err
	}
	defer jobs.stop()
	used := cpu()
	if err := jobs.wait(ctx, markCreated, b.plans, c.limit); err != nil {
		return nil, err
	}
	s := sample{"all-cpu": cpu() - used}
	s["created"], s["created-half"] = after(slot, jobs.arrivals(markCreated))
	return s, nil
}

// clearJobs removes all CronJobs and Jobs, and returns when they are gone.
func (b *bench) clearJobs(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil // the whole cluster goes
	}
	background := metav1.DeletePropagationBackground
	o := metav1.DeleteOptions{PropagationPolicy: &background}
	err := each(ctx, b.namespaces, func(ctx context.Context, i int) error {
		batch := b.admin.BatchV1()
		if err := batch.CronJobs(b.namespace(i)).DeleteCollection(ctx, o, metav1.ListOptions{}); err != nil {
			return err
		}
		return batch.Jobs(b.namespace(i)).DeleteCollection(ctx, o, metav1.ListOptions{})
	})
	if err != nil {
		return fmt.Errorf("clear CronJobs: %w", err)
	}
	left, err := b.admin.BatchV1().Jobs("").List(ctx, metav1.ListOptions{})
	if err == nil && len(left.Items) > 0 {
		err = fmt.Errorf("clear CronJobs: %d Jobs are still there", len(left.Items))
	}
	return err
}

// startController runs kube-controller-manager with the CronJob controller
// alone. It returns when that is healthy, with what ends it.
func (b *bench) startController(ctx context.Context, c controller) (end func(), err error) {
	binary, err := cluster.Asset("kube-controller-manager")
	if err != nil {
		return nil, err
	}
	kubeconfig, err := b.cluster.KubeconfigFile("cronjobs", b.cluster.AdminConfig())
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(b.dir, "cronjob-controller.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(binary, append([]string{
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--controllers=cronjob-controller", "--leader-elect=false", "--use-service-account-credentials=true",
		"--bind-address=127.0.0.1", "--secure-port=" + port, "--cert-dir=" + b.dir,
	}, c.args...)...)
	cmd.Stdout, cmd.Stderr = log, log
	gone, err := launch(cmd)
	if err != nil {
		return nil, fmt.Errorf("start the CronJob controller: %w", err)
	}
	end = func() {
		_ = cmd.Process.Kill()
		<-gone
	}
	if err := healthy(ctx, "https://127.0.0.1:"+port+"/healthz", gone); err != nil {
		end()
		said, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("the CronJob controller: %w; it said:\n%s", err, tail(string(said)))
	}
	return end, nil
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	address := l.Addr().String()
	return address[strings.LastIndexByte(address, ':')+1:], l.Close()
}

// healthy returns when an endpoint with a certificate of its own making says 200.
func healthy(ctx context.Context, url string, gone <-chan struct{}) error {
	transport, err := rest.TransportFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if response, err := transport.RoundTrip(request); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("is not healthy: %w", ctx.Err())
		case <-gone:
			return errors.New("has ended")
		case <-time.After(100 * time.Millisecond):
		}
	}
}
