package notify

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/nicholas-fedor/shoutrrr/pkg/format"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/discord"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/googlechat"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/lark"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/matrix"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/mattermost"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/rocketchat"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/signal"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/slack"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/teams"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/telegram"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/wecom"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/zulip"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/incident/opsgenie"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/incident/pagerduty"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/push/bark"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/push/gotify"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/push/ifttt"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/push/join"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/push/ntfy"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/push/pushbullet"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/push/pushover"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/specialized/notifiarr"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"
)

// service is a kind of sink with one of its URLs.
type service interface {
	send(m message) error
}

// maker makes a service for a URL. A custom URL has a second scheme after the service's own:
// generic+https.
type maker func(u *url.URL, custom bool) (service, error)

// makers are the services by URL scheme: those of shoutrrr's router, except logger, which reaches
// nobody. The router itself is not imported: its mail, webhooks and logger execute text templates,
// for which the linker keeps every exported method of the agent.
func makers() map[string]maker {
	return map[string]maker{
		"bark":       library(func() types.Service { return &bark.Service{} }),
		"discord":    library(func() types.Service { return &discord.Service{} }),
		"generic":    newWebhook,
		"googlechat": library(func() types.Service { return &googlechat.Service{} }),
		"gotify":     library(func() types.Service { return &gotify.Service{} }),
		"hangouts":   library(func() types.Service { return &googlechat.Service{} }),
		"ifttt":      library(func() types.Service { return &ifttt.Service{} }),
		"join":       library(func() types.Service { return &join.Service{} }),
		"lark":       library(func() types.Service { return &lark.Service{} }),
		"matrix":     library(func() types.Service { return &matrix.Service{} }),
		"mattermost": library(func() types.Service { return &mattermost.Service{} }),
		"notifiarr":  library(func() types.Service { return &notifiarr.Service{} }),
		"ntfy":       library(func() types.Service { return &ntfy.Service{} }),
		"opsgenie":   library(func() types.Service { return &opsgenie.Service{} }),
		"pagerduty":  library(func() types.Service { return &pagerduty.Service{} }),
		"pushbullet": library(func() types.Service { return &pushbullet.Service{} }),
		"pushover":   library(func() types.Service { return &pushover.Service{} }),
		"rocketchat": library(func() types.Service { return &rocketchat.Service{} }),
		"signal":     library(func() types.Service { return &signal.Service{} }),
		"slack":      library(func() types.Service { return &slack.Service{} }),
		"smtp":       newMail,
		"teams":      library(func() types.Service { return &teams.Service{} }),
		"telegram":   library(func() types.Service { return &telegram.Service{} }),
		"wecom":      library(func() types.Service { return &wecom.Service{} }),
		"zulip":      library(func() types.Service { return &zulip.Service{} }),
	}
}

// locate finds the service of a URL and configures it.
func locate(rawURL string) (service, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, errors.New("it is no URL")
	}
	scheme, _, custom := strings.Cut(u.Scheme, "+")
	maker, known := makers()[scheme]
	if !known {
		return nil, fmt.Errorf("unknown service: %q", scheme)
	}
	s, err := maker(u, custom)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", scheme, err)
	}
	return s, nil
}

// Why a service cannot be configured. Its own error is not shown: it may contain parts of the URL.
const (
	noCustomURL  = "custom URLs are not supported by this service"
	badCustomURL = "failed to convert the custom URL"
	badURL       = "failed to initialize the service"
)

// fromLibrary sends with a service of shoutrrr.
type fromLibrary struct {
	types.Service
	takes bool // a title
	shows bool // it
}

// library makes services of shoutrrr. They get no logger: their logs contain URLs.
func library(empty func() types.Service) maker {
	return func(u *url.URL, custom bool) (service, error) {
		s := empty()
		if custom {
			converter, ok := s.(types.CustomURLService)
			if !ok {
				return nil, errors.New(noCustomURL)
			}
			var err error
			if u, err = converter.GetConfigURLFromCustom(u); err != nil {
				return nil, errors.New(badCustomURL)
			}
		}
		if s.Initialize(u, nil) != nil {
			return nil, errors.New(badURL)
		}
		takes, shows := title(s)
		return fromLibrary{asText(s), takes, shows}, nil
	}
}

func (l fromLibrary) send(m message) error {
	if l.GetID() == slack.Scheme {
		escape := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
		m.title, m.text = escape.Replace(m.title), escape.Replace(m.text)
	}
	params := types.Params{}
	if l.takes {
		params.SetTitle(m.title)
	}
	if !l.shows {
		m.text = m.withTitle()
	}
	return l.Send(m.text, &params)
}

// withTitle is a message for a service that has no field for a title.
func (m message) withTitle() string { return m.title + "\n" + m.text }

// title says whether a service takes a title, and whether it shows it: some take it and show it to
// nobody.
func title(s types.Service) (takes, shows bool) {
	fields := format.NewPropKeyResolver(format.GetServiceConfig(s))
	takes = slices.Contains(fields.QueryFields(), types.TitleKey)
	return takes, takes && !slices.Contains([]string{ifttt.Scheme, matrix.Scheme, mattermost.Scheme, zulip.Scheme}, s.GetID())
}

// asText has a service take a message as text, also where its URL says that it is markup or a whole
// request: many write to a sink, and none of them chooses how the others' messages look.
func asText(s types.Service) types.Service {
	switch s := s.(type) {
	case *discord.Service:
		s.Config.JSON = false
	case *telegram.Service:
		s.Config.ParseMode = telegram.ParseModes.None
	}
	return s
}
