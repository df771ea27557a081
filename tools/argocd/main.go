// Command argocd is as much of Argo CD as applies an Application: its application
// controller, its repository server, and the Redis between the two, in memory.
//
//	argocd controller|repo-server [flags of Argo CD]
//	argocd redis ADDRESS
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alicebob/miniredis/v2"
	controller "github.com/argoproj/argo-cd/v3/cmd/argocd-application-controller/commands"
	reposerver "github.com/argoproj/argo-cd/v3/cmd/argocd-repo-server/commands"
	"github.com/spf13/cobra"
)

func main() {
	root := &cobra.Command{Use: "argocd", SilenceUsage: true}
	for name, command := range map[string]*cobra.Command{"controller": controller.NewCommand(), "repo-server": reposerver.NewCommand()} {
		command.Use = name
		root.AddCommand(command)
	}
	root.AddCommand(&cobra.Command{Use: "redis ADDRESS", Args: cobra.ExactArgs(1), RunE: func(_ *cobra.Command, args []string) error { return serve(args[0]) }})
	if err := root.Execute(); err != nil {
		os.Exit(1)
	}
}

// serve is a Redis until somebody ends it.
func serve(address string) error {
	redis := miniredis.NewMiniRedis()
	if err := redis.StartAddr(address); err != nil {
		return fmt.Errorf("serve Redis at %s: %w", address, err)
	}
	defer redis.Close()
	end := make(chan os.Signal, 1)
	signal.Notify(end, os.Interrupt, syscall.SIGTERM)
	<-end
	return nil
}
