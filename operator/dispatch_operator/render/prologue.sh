# Gives the job its epoch and its attempt token, enters its directory and becomes its command.
dispatch_refuse() {
  echo "dispatch-prologue: $1" >&2
  if [ -w /dev/termination-log ]; then
    { echo "dispatch-prologue: $1" >/dev/termination-log; } 2>/dev/null
  fi
  exit 125
}
case ${DISPATCH_K8S_RESTART-} in
  0) ;;
  '' | 0* | *[!0123456789]* | ???????*) dispatch_refuse 'DISPATCH_K8S_RESTART is not a number from 0 to 999999' ;;
esac
# Joined as digits, because the epoch exceeds signed 64-bit arithmetic.
case $DISPATCH_K8S_RESTART in
  ?) DISPATCH_EPOCH=${DISPATCH_K8S_EPOCH_PREFIX}00000$DISPATCH_K8S_RESTART ;;
  ??) DISPATCH_EPOCH=${DISPATCH_K8S_EPOCH_PREFIX}0000$DISPATCH_K8S_RESTART ;;
  ???) DISPATCH_EPOCH=${DISPATCH_K8S_EPOCH_PREFIX}000$DISPATCH_K8S_RESTART ;;
  ????) DISPATCH_EPOCH=${DISPATCH_K8S_EPOCH_PREFIX}00$DISPATCH_K8S_RESTART ;;
  ?????) DISPATCH_EPOCH=${DISPATCH_K8S_EPOCH_PREFIX}0$DISPATCH_K8S_RESTART ;;
  *) DISPATCH_EPOCH=$DISPATCH_K8S_EPOCH_PREFIX$DISPATCH_K8S_RESTART ;;
esac
DISPATCH_ATTEMPT_TOKEN=$DISPATCH_ATTEMPT-$DISPATCH_K8S_POD_UID
export DISPATCH_EPOCH DISPATCH_ATTEMPT_TOKEN
# A leading ./ keeps CDPATH, a leading dash and "-" alone from meaning anything to cd.
case ${DISPATCH_K8S_WORKDIR-} in
  '') ;;
  /*) cd -P "$DISPATCH_K8S_WORKDIR" 2>/dev/null || dispatch_refuse 'the working directory can not be entered' ;;
  *) cd -P "./$DISPATCH_K8S_WORKDIR" 2>/dev/null || dispatch_refuse 'the working directory can not be entered' ;;
esac
exec "$@"
