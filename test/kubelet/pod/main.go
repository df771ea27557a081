// Command pod is what runs in the containers of a test's node, and all that is
// in their image.
//
//	pod pause           waits to be told to end: the sandbox of every pod
//	pod serve [GRACE]   the same, but takes GRACE (0s) to end after SIGTERM
//	pod say WORD…       prints the words, and ends
//	pod reboot FILE     says the boot ID of its node, and asks the test for a reboot
package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// bootID is where the node's own mounts have it: they are over what the kernel,
// which the node shares with the machine, says to a container.
const bootID = "/proc/1/root/proc/sys/kernel/random/boot_id"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pod:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("say what to be: pause, serve [GRACE], say WORD… or reboot FILE")
	}
	switch what, rest := args[0], args[1:]; {
	case (what == "pause" || what == "serve") && len(rest) == 0:
		return serve(0)
	case what == "serve" && len(rest) == 1:
		grace, err := time.ParseDuration(rest[0])
		if err != nil {
			return fmt.Errorf("read how long to take after SIGTERM: %w", err)
		}
		return serve(grace)
	case what == "say":
		_, err := fmt.Println(strings.Join(rest, " "))
		return err
	case what == "reboot" && len(rest) == 1:
		return reboot(rest[0])
	}
	return fmt.Errorf("%q: want pause, serve [GRACE], say WORD… or reboot FILE", args)
}

// serve ends `grace` after it was asked to. The first process of a container
// gets no signal that it does not ask for, not even SIGTERM.
func serve(grace time.Duration) error {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT)
	fmt.Println("serving")
	fmt.Printf("asked to end (%s), which takes %s\n", <-asked, grace)
	time.Sleep(grace)
	fmt.Println("done")
	return nil
}

// reboot asks for a reboot by writing FILE, as a Job on a real node would by
// telling its systemd, which needs the same rights: privileged, with hostPID.
// FILE holds the command line of the first process in sight, which is the
// node's. It appears whole or not at all.
func reboot(file string) error {
	id, err := os.ReadFile(bootID)
	if err != nil {
		return fmt.Errorf("read the node's boot ID: %w", err)
	}
	first, err := os.ReadFile("/proc/1/cmdline")
	if err != nil {
		return fmt.Errorf("look at the first process: %w", err)
	}
	fmt.Printf("%s", id)
	line := strings.TrimRight(strings.ReplaceAll(string(first), "\x00", " "), " ")
	if err := os.WriteFile(file+".new", []byte(line+"\n"), 0o644); err != nil {
		return fmt.Errorf("ask for a reboot: %w", err)
	}
	return os.Rename(file+".new", file)
}
