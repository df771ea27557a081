// Command schemagen writes the JSON Schemas of the documents, for editors and
// CI: from the Go types that the agent reads them into, the table of step types
// and the comments beside them. What a schema cannot say (a cron expression, a
// CEL expression, names that must differ) `kubectl maint lint` says.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/invopop/jsonschema"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "schemagen:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	set := flag.NewFlagSet("schemagen", flag.ExitOnError)
	out := set.String("o", "../../docs/schemas", "the folder to write to")
	root := set.String("root", "../..", "the root of the repository, whose comments are read")
	if err := set.Parse(args); err != nil {
		return err
	}
	all, err := schemas(*root)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(*out, 0o755); err != nil {
		return err
	}
	for name, s := range all {
		text, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(*out, name), append(text, '\n'), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// schemas are all schemas, by the names of their files.
func schemas(root string) (map[string]*jsonschema.Schema, error) {
	source, err := readRooms(filepath.Join(root, "pkg"), "plan", "connector", "document", "selector", "policy", "drain", "nodes", "agentconfig")
	if err != nil {
		return nil, err
	}
	sleep, err := readRooms(filepath.Join(root, "pkg"), "hibernate", "connector", "document", "selector", "policy", "plan")
	if err != nil {
		return nil, err
	}
	connectors, err := readRooms(filepath.Join(root, "pkg"), "connector", "document")
	if err != nil {
		return nil, err
	}
	time, err := readSource(filepath.Join(root, "pkg", "schedule"))
	if err != nil {
		return nil, err
	}
	money, err := readRooms(filepath.Join(root, "pkg"), "savings")
	if err != nil {
		return nil, err
	}
	plans, errPlan := planSchema(source)
	templates, errTemplate := templateSchema(source)
	config, errConfig := agentConfigSchema(source)
	policies, errPolicy := policySchema(source.with(time))
	calendars, errCalendar := calendarSchema(source.with(time))
	hibernates, errHibernate := hibernateSchema(sleep.with(time))
	clouds, errCloud := cloudProviderSchema(connectors)
	clusters, errCluster := clusterSchema(connectors)
	prices, errPrices := pricesSchema(money)
	return map[string]*jsonschema.Schema{
		"plan.schema.json":        plans,
		"template.schema.json":    templates,
		"agentconfig.schema.json": config,
		"policy.schema.json":      policies,
		"calendar.schema.json":    calendars,

		"hibernateplan.schema.json": hibernates,
		"cloudprovider.schema.json": clouds,
		"k8scluster.schema.json":    clusters,
		"prices.schema.json":        prices,
	}, errors.Join(errPlan, errTemplate, errConfig, errPolicy, errCalendar, errHibernate, errCloud, errCluster, errPrices)
}
